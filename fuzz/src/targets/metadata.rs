//! The metadata service: items of the identity document, the role, and its credentials.

use ecs::fuzzing::{first_role, item, role_credentials};
use serde_json::Value;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let document: Option<Value> = serde_json::from_str(text).ok();
    let field = |name: &str| document.as_ref()?.get(name)?.as_str();
    for key in ["instance-id", "region-id", "zone-id", "instance-type"] {
        let found = item(text, key);
        assert_eq!(found.as_deref(), field(key).filter(|value| !value.is_empty()), "{key}");
    }
    if let Some(role) = first_role(text) {
        assert!(
            !role.is_empty() && !role.contains('\n') && role.trim() == role,
            "{role:?}"
        );
    }
    match role_credentials(text) {
        Ok(credentials) => {
            assert_eq!(field("Code"), Some("Success"));
            for name in ["AccessKeyId", "AccessKeySecret", "SecurityToken", "Expiration"] {
                assert!(field(name).is_some_and(|value| !value.is_empty()), "{name}");
            }
            assert!(credentials.expires.is_some());
            let printed = format!("{credentials:?}");
            let secret = field("AccessKeySecret").unwrap_or_default();
            assert!(secret.len() < 8 || !printed.contains(secret), "{printed}");
        }
        Err(error) => {
            let printed = format!("{error} {error:?}");
            let secret = field("AccessKeySecret").unwrap_or_default();
            assert!(secret.len() < 24 || !printed.contains(secret), "{printed}");
        }
    }
}
