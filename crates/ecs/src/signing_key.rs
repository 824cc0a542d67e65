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
        match &last.1 {
            Some(known) if known.has_id_of(credentials) => {}
            Some(_) => *last = (last.0 + 1, Some(credentials.clone())),
            // The first key is not a change: the rows that it reads would be outdated immediately.
            None => last.1 = Some(credentials.clone()),
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
        let first = key.generation();
        for secret in ["a", "b"] {
            key.record(&Credentials::new("LTAI-1", secret));
            assert_eq!(key.generation(), first);
        }
        key.record(&Credentials::new("LTAI-2", "b"));
        assert_ne!(key.generation(), first);
    }
}
