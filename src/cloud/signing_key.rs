//! Recognizes a change of the access key that signs the calls.

use std::sync::{Mutex, PoisonError};

use super::credential::Credentials;

/// The last access key ID, and the number of changes.
#[derive(Debug, Default)]
pub(super) struct SigningKey(Mutex<(u64, Option<Credentials>)>);

impl SigningKey {
    /// Records the credentials of a call that is about to be sent.
    pub(super) fn record(&self, credentials: &Credentials) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = last
            .1
            .as_ref()
            .is_some_and(|known| known.has_id_of(credentials));
        if !is_known {
            *last = (last.0 + 1, Some(credentials.clone()));
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_access_key_changes_the_number_and_another_secret_does_not() {
        let key = SigningKey::default();
        key.record(&Credentials::new("LTAI-1", "a"));
        let first = key.generation();
        key.record(&Credentials::new("LTAI-1", "b"));
        assert_eq!(key.generation(), first);
        key.record(&Credentials::new("LTAI-2", "b"));
        assert_ne!(key.generation(), first);
    }
}
