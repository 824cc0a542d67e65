//! Stable failure names: operators search for them, alert on them and write them into runbooks. The reference page is
//! generated from the table.

mod kind;
mod table;

pub use kind::FailureKind;
pub use table::Failure;

impl From<&ecs::Error> for Failure {
    fn from(error: &ecs::Error) -> Self {
        error.condition().into()
    }
}

impl From<&ecs::credential::CredentialError> for Failure {
    fn from(error: &ecs::credential::CredentialError) -> Self {
        ecs::tls::rejection(error).map_or(Self::NoCredentials, Self::from)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ecs::Kind;

    use super::*;

    #[test]
    fn every_name_is_unique_and_has_advice() {
        let mut seen = BTreeSet::new();
        for failure in Failure::ALL {
            let name = failure.name();
            assert!(seen.insert(name), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_uppercase() || c == '_'), "{name}");
            for text in [failure.description(), failure.advice()] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{name}: {text}");
                // They end a sentence of a message, and are cells of a table.
                assert!(!text.contains('\n') && !text.contains('|'), "{name}: {text}");
            }
        }
    }

    #[test]
    fn advice_to_retry_names_the_next_step() {
        let advice = Failure::ALL.iter().map(|failure| (failure, failure.advice()));
        let retried = advice.filter(|(_, advice)| advice.contains("retries automatically"));
        let retried: Vec<_> = retried.collect();
        assert!(retried.len() > 15, "{retried:?}");
        for (failure, advice) in retried {
            assert!(advice.contains("if the error persists, "), "{failure:?}: {advice}");
        }
    }

    #[test]
    fn an_error_without_a_listed_code_has_the_failure_of_its_kind() {
        for (kind, name) in [
            (Kind::Expired, "CREDENTIALS_EXPIRED"),
            (Kind::Denied, "ACCESS_DENIED"),
            (Kind::Conflict, "RESOURCE_BUSY"),
            (Kind::NotFound, "NO_SUCH_RESOURCE"),
            (Kind::Quota, "QUOTA_REACHED"),
            (Kind::Precondition, "INVALID_STATE"),
            (Kind::Invalid, "REQUEST_REJECTED"),
            (Kind::Bug, "DRIVER_BUG"),
        ] {
            assert_eq!(Failure::from(&ecs::Error::new(kind, "X")).name(), name);
        }
    }
}
