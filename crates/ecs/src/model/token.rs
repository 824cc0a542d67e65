//! Idempotency tokens (`ClientToken` in the API): the same request always has the same token.

use std::fmt;

use sha2::{Digest, Sha256};

/// An idempotency token: 64 ASCII characters at most (ECS API, ClientToken semantics).
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub struct ClientToken(String);

impl ClientToken {
    /// The token of a request: a digest of the action and the identifying parts of the request. Each part is hashed
    /// with its length, so that different lists of parts never have the same digest.
    #[must_use]
    pub fn derive<'a>(action: &'a str, parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut digest = Sha256::new();
        for part in std::iter::once(action).chain(parts) {
            digest.update(part.len().to_be_bytes());
            digest.update(part.as_bytes());
        }
        Self(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClientToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_request_gives_the_same_token_within_64_characters() {
        let token = ClientToken::derive("CreateDisk", ["pvc-1", "20"]);
        assert_eq!(token, ClientToken::derive("CreateDisk", ["pvc-1", "20"]));
        assert_eq!(token.as_str().len(), 64);
    }

    #[test]
    fn a_token_depends_on_the_action() {
        assert_ne!(
            ClientToken::derive("CreateDisk", ["pvc-1"]),
            ClientToken::derive("CreateSnapshot", ["pvc-1"])
        );
    }

    #[test]
    fn parts_of_a_token_are_separated() {
        assert_ne!(
            ClientToken::derive("CreateDisk", ["ab", "c"]),
            ClientToken::derive("CreateDisk", ["a", "bc"])
        );
    }
}
