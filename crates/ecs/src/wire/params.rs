//! Request parameters of a call: flattened, with 1-based indexes.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

pub type Params = BTreeMap<String, String>;

/// The members of a request as parameters, nested ones as `Name.1` or `Tag.1.Key`. Without those that are null or
/// false: the API rejects some empty parameters.
///
/// # Panics
/// If the request is not an object.
pub fn params(request: &impl Serialize) -> Params {
    let request = serde_json::to_value(request).expect("a request is an object");
    let mut params = Params::new();
    flatten(String::new(), request, &mut params);
    params
}

/// The request as JSON, with defaults for its missing and empty members.
pub fn with(request: &impl Serialize, defaults: Value) -> Value {
    let mut request = serde_json::to_value(request).expect("a request is an object");
    let Value::Object(defaults) = defaults else {
        return request;
    };
    for (name, value) in defaults {
        let member = &mut request[name];
        if member.is_null() {
            *member = value;
        }
    }
    request
}

fn flatten(name: String, value: Value, params: &mut Params) {
    let text = match value {
        Value::Null | Value::Bool(false) => return,
        Value::String(text) => text,
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            for (item, number) in items.into_iter().zip(1..) {
                flatten(format!("{name}.{number}"), item, params);
            }
            return;
        }
        Value::Object(members) => {
            let prefix = if name.is_empty() { name } else { name + "." };
            for (name, member) in members {
                flatten(format!("{prefix}{name}"), member, params);
            }
            return;
        }
    };
    params.insert(name, text);
}
