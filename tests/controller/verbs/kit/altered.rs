//! Changes of requests and responses between the client and the fake cloud.

use std::collections::BTreeMap;

use ecs::credential::Credentials;
use ecs::sign::{API_VERSION, Scheme, UnsignedRequest};
use ecs::transport::Action;
use fake_ecs::Cloud;
use http::{Request, Response};
use serde_json::Value;
use tokio_util::bytes::Bytes;

/// Parameters that a new signature sets again.
const SIGNED: &[&str] = &[
    "AccessKeyId",
    "Action",
    "Format",
    "Signature",
    "SignatureMethod",
    "SignatureNonce",
    "SignatureVersion",
    "Timestamp",
    "Version",
];

pub(crate) fn is_action(request: &Request<String>, action: &str) -> bool {
    let found = request.extensions().get::<Action>();
    found.expect("each request has its action").0 == action
}

/// The parameters of a request without those of its signature.
pub(crate) fn params(request: &Request<String>) -> BTreeMap<String, String> {
    let url: url::Url = request.uri().to_string().parse().unwrap();
    let pairs = url.query_pairs().into_owned();
    pairs.filter(|(name, _)| !SIGNED.contains(&name.as_str())).collect()
}

/// The request with other parameters, signed for this cloud.
pub(crate) fn with_params(
    request: &Request<String>,
    params: &BTreeMap<String, String>,
    cloud: &Cloud,
) -> Request<String> {
    let (id, secret) = cloud.access_key();
    let signed = Scheme::V1.sign(&UnsignedRequest {
        action: request.extensions().get::<Action>().unwrap().0,
        version: API_VERSION,
        params,
        host: "memory",
        credentials: &Credentials::new(id, secret),
        time: cloud.now(),
        nonce: &uuid::Uuid::new_v4().simple().to_string(),
    });
    let mut changed = Request::post(format!("http://memory/?{}", signed.query));
    for (name, value) in signed.headers {
        changed = changed.header(name, value);
    }
    changed.body(String::new()).unwrap()
}

/// Changes the rows of a response to `DescribeDisks`; other responses stay as they are.
pub(crate) fn change_rows(response: Response<Bytes>, change: impl FnOnce(&mut Vec<Value>)) -> Response<Bytes> {
    response.map(|body| {
        let Ok(mut json) = serde_json::from_slice::<Value>(&body) else {
            return body;
        };
        match json.pointer_mut("/Disks/Disk").and_then(Value::as_array_mut) {
            Some(rows) => change(rows),
            None => return body,
        }
        json.to_string().into()
    })
}

/// The response with this field at its top.
pub(crate) fn with_field(response: Response<Bytes>, name: &str, value: &str) -> Response<Bytes> {
    response.map(|body| {
        let mut json: Value = serde_json::from_slice(&body).unwrap();
        json[name] = value.into();
        json.to_string().into()
    })
}
