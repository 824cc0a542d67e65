//! HTTP responses of the cloud: success, error, or malformed.

use std::time::Duration;

use http::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio_util::bytes::Bytes;

use super::error::{Condition, Error, Kind};
use super::request_secrets::RequestSecrets;
use super::wire;
use crate::base::span;

/// A complete HTTP response. Does not implement Debug, because it may contain credentials.
pub(super) struct Response(pub(super) http::Response<Bytes>);

#[derive(Debug, Default)]
struct ErrorBody {
    code: Option<String>,
    message: Option<String>,
    request_id: Option<String>,
}

impl Response {
    fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    pub(super) fn is_success(&self) -> bool {
        self.status() == 200
    }

    /// Whether the cloud rejected the time of the request, which then had no effect.
    pub(super) fn rejects_time(&self) -> bool {
        let Ok(body) = ErrorBody::read(self.0.body()) else {
            return false;
        };
        let condition = body.error("", self.status()).condition();
        !self.is_success() && matches!(condition, Condition::ClockSkew | Condition::ClockFormat)
    }

    /// Parses the body.
    ///
    /// # Errors
    /// The error in the response; [`Kind::Ambiguous`] if the body cannot be parsed.
    pub(super) fn parse<T: DeserializeOwned>(
        &self,
        action: &'static str,
        secrets: &RequestSecrets,
    ) -> Result<T, Error> {
        let unreadable = || Error::new(Kind::Ambiguous, action).with_status(self.status());
        if !self.is_success() {
            return Err(self.error(action, secrets));
        }
        if secrets.occur_in(self.0.body()) {
            let why = "the response repeats secrets of the request and is not parsed";
            return Err(unreadable().with_message(why));
        }
        let malformed = |error| {
            unreadable()
                .with_message("the response cannot be parsed")
                .with_source(error)
        };
        let json = wire::parse(self.0.body()).map_err(malformed)?;
        if let Some(id) = json.get("RequestId").and_then(Value::as_str) {
            span::record_request_id(id);
        }
        serde_json::from_value(json).map_err(malformed)
    }

    /// The error of an unsuccessful response. A proxy's page or an empty body leaves only the status; truncated JSON is
    /// a lost response, regardless of its status.
    pub(super) fn error(&self, action: &'static str, secrets: &RequestSecrets) -> Error {
        let error = match ErrorBody::read(self.0.body()) {
            Ok(body) => body.redact(secrets).error(action, self.status()),
            Err(error) if error.is_eof() && !self.0.body().is_empty() => Error::new(Kind::Ambiguous, action)
                .with_status(self.status())
                .with_message("the response is truncated")
                .with_source(error),
            Err(_) => ErrorBody::default().error(action, self.status()),
        };
        error.with_retry_after(retry_after(self.0.headers()))
    }
}

impl ErrorBody {
    /// Reads the members of an object. The code is read even if another member has a wrong type or encoding.
    fn read(body: &[u8]) -> serde_json::Result<Self> {
        let mut members: Map<String, Value> = serde_json::from_str(&String::from_utf8_lossy(body))?;
        let mut text = |name| match members.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        Ok(Self {
            code: text("Code"),
            message: text("Message"),
            request_id: text("RequestId"),
        })
    }

    /// Removes the parts that repeat secrets of the request.
    fn redact(self, secrets: &RequestSecrets) -> Self {
        let part = |text: Option<String>| secrets.redact(text?);
        let redacted = || "(redacted: the message repeats secrets of the request)".to_owned();
        // The gateway appends the text that it signed.
        let message = |text: String| match text.split_once("server string to sign is:") {
            Some((prefix, _)) => prefix.trim_end().to_owned(),
            None => text,
        };
        let message = self.message.map(message);
        Self {
            code: part(self.code),
            message: message.map(|text| secrets.redact(text).unwrap_or_else(redacted)),
            request_id: part(self.request_id),
        }
    }

    fn error(self, action: &'static str, status: u16) -> Error {
        let code = self.code.unwrap_or_default();
        Error::from_response(action, status, &code)
            .with_message(self.message.unwrap_or_default())
            .with_request_id(self.request_id.unwrap_or_default())
    }
}

/// The longest quota window is a minute. A longer wait is an error of a proxy and would block the API permanently.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(65);

/// The wait that the cloud requests: the larger `TimeLeft` (milliseconds) of its two headers.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    ["x-ratelimit-user-api", "x-ratelimit-user"]
        .into_iter()
        .filter_map(|name| headers.get(name)?.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|field| field.trim().strip_prefix("TimeLeft:")?.trim().parse().ok())
        .map(Duration::from_millis)
        .max()
        .map(|wait| wait.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::credential::Credentials;
    use crate::sign::SignedRequest;

    #[test]
    fn the_longer_wait_of_both_headers_is_used() {
        let mut headers = HeaderMap::new();
        headers.insert(
            "x-ratelimit-user-api",
            HeaderValue::from_static("Limit:1,Remain:0,TimeLeft:2000,Reset:1"),
        );
        headers.insert("x-ratelimit-user", HeaderValue::from_static("TimeLeft:300"));
        assert_eq!(retry_after(&headers), Some(Duration::from_secs(2)));
        assert_eq!(retry_after(&HeaderMap::new()), None);
        let years = HeaderValue::from_static("TimeLeft:99999999999999");
        headers.insert("x-ratelimit-user", years);
        assert_eq!(retry_after(&headers), Some(MAX_RETRY_AFTER));
    }

    fn response(status: u16, body: &str) -> Response {
        let response = http::Response::builder().status(status);
        Response(response.body(Bytes::from(body.to_owned())).unwrap())
    }

    fn secrets() -> RequestSecrets {
        let signed = SignedRequest {
            query: String::new(),
            headers: vec![],
            signature: "not-in-any-text".to_owned(),
        };
        RequestSecrets::from_request(&Credentials::new("LTAI5tEXAMPLE", "secret-of-it"), &signed)
    }

    #[test]
    fn parts_of_an_error_that_repeat_the_key_are_redacted() {
        let body = ErrorBody {
            code: Some("InvalidAccessKeyId.NotFound".to_owned()),
            message: Some("There is no key LTAI5tEXAMPLE.".to_owned()),
            request_id: Some("R-1".to_owned()),
        };
        let error = body.redact(&secrets()).error("DeleteDisk", 404);
        assert_eq!(
            error.to_string(),
            "DeleteDisk failed with InvalidAccessKeyId.NotFound: (redacted: the message repeats secrets of the \
             request) (HTTP 404, RequestId R-1)"
        );
    }

    #[test]
    fn a_truncated_error_is_ambiguous_and_a_page_is_classified_by_status() {
        for (body, kind) in [
            (r#"{"Code":"InvalidDiskId.NotFound"}"#, Kind::NotFound),
            (r#"{"Code":"InvalidDiskId.Not"#, Kind::Ambiguous),
            ("<html>no such page</html>", Kind::Invalid),
            ("", Kind::Invalid),
        ] {
            let response = response(404, body);
            let error = response.error("DeleteDisk", &secrets());
            assert_eq!((error.kind(), error.status()), (kind, Some(404)), "{body}");
        }
    }

    #[test]
    fn the_code_is_read_only_from_an_object_and_without_regard_to_other_members() {
        for (body, code) in [
            (
                &br#"{"Code":"InvalidDiskId.NotFound","Message":5}"#[..],
                Some("InvalidDiskId.NotFound"),
            ),
            (
                b"{\"Code\":\"InvalidDiskId.NotFound\",\"Message\":\"\xb2\xbb\"}",
                Some("InvalidDiskId.NotFound"),
            ),
            (br#"["InvalidDiskId.NotFound"]"#, None),
        ] {
            let response = http::Response::builder().status(404);
            let response = Response(response.body(Bytes::from(body)).unwrap());
            assert_eq!(response.error("DeleteDisk", &secrets()).code(), code);
        }
    }

    #[test]
    fn a_time_that_is_skewed_or_malformed_is_rejected() {
        for (code, expected) in [
            ("InvalidTimeStamp.Expired", true),
            ("InvalidTimeStamp.Format", true),
            ("IllegalTimestamp", true),
            ("InvalidDiskId.NotFound", false),
        ] {
            let response = response(400, &format!(r#"{{"Code":"{code}"}}"#));
            assert_eq!(response.rejects_time(), expected, "{code}");
        }
    }

    #[test]
    fn the_signed_string_is_removed_from_the_message() {
        let body = ErrorBody {
            code: Some("SignatureDoesNotMatch".to_owned()),
            message: Some(
                "Specified signature is not matched with our calculation. server string to sign \
                 is:POST&%2F&AccessKeyId%3DLTAI"
                    .to_owned(),
            ),
            request_id: None,
        };
        let error = body.redact(&secrets()).error("DeleteDisk", 400);
        let text = error.to_string();
        assert!(!text.contains("LTAI") && text.contains("not matched"), "{text}");
    }
}
