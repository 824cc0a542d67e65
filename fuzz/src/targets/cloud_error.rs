//! Error responses: the code is that of the body, and only then; secrets of the request are not repeated.

use std::time::Duration;

use ecs::credential::Credentials;
use ecs::fuzzing;
use ecs::{Condition, Kind};
use serde_json::Value;

use crate::input::Input;

const SECRET: &str = "secret-of-the-key";

/// The action, the status, a rate limit in a line, and the body.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let action = ecs::client::ACTIONS[usize::from(input.byte()) % ecs::client::ACTIONS.len()];
    let status = 201 + input.u16() % 400;
    let limit = input.line();
    let body = input.0;
    let credentials = Credentials::new("LTAI5tEXAMPLE", SECRET);
    let Some((error, rejects_time)) = fuzzing::error(action, status, limit, body, &credentials) else {
        return;
    };
    let json: Option<Value> = serde_json::from_str(&String::from_utf8_lossy(body)).ok();
    let field = |name: &str| json.as_ref()?.get(name)?.as_str().filter(|text| !text.is_empty());
    if let Some(code) = error.code() {
        assert_eq!(field("Code"), Some(code));
    }
    if let Some(id) = error.request_id() {
        assert_eq!(field("RequestId"), Some(id));
    }
    assert_eq!((error.action(), error.status()), (action, Some(status)));
    let text = error.to_string();
    assert!(!text.contains(SECRET) && !text.contains("LTAI5tEXAMPLE"), "{text}");
    // Only a code proves that a resource does not exist, or that the cloud rejected the time.
    if error.kind() == Kind::NotFound || rejects_time {
        assert!(
            error.code().is_some() || rejects_time && field("Code").is_some(),
            "{text}"
        );
    }
    // Without a code, a server error may have taken effect.
    if field("Code").is_none() && status >= 500 {
        assert!(error.may_have_taken_effect(), "{text}");
    }
    assert!(
        rejects_time || error.condition() != Condition::ClockSkew || status == 200,
        "{text}"
    );
    assert!(error.retry_after().is_none_or(|wait| wait <= Duration::from_secs(65)));
}
