//! How the API server can fail, and what to do about it.

use crate::base::Elapsed;

/// A request that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ServiceAccount may not do it.
    #[error(
        "cannot {step}: {words}. Grant it: the chart does (docs/reference/kubernetes-rights.md), a controller of your \
         own needs a Role or ClusterRole with it"
    )]
    Forbidden {
        /// What was wanted, in words.
        step: String,
        /// The API server's words, which name account, verb and resource.
        words: String,
    },
    /// What is to be changed is not there.
    #[error("cannot {step}: it is not there; {todo}")]
    Missing {
        /// What was wanted, in words.
        step: String,
        /// What makes it.
        todo: &'static str,
    },
    /// What is there is a text of another kind. It may be somebody's work, and is not written over.
    #[error(
        "cannot {step}: {file} in it is not understood, and is left as it is: {reason}. Mend it, or take {file} out of it \
         (kubectl edit): then it is written anew"
    )]
    Foreign {
        /// What was wanted, in words.
        step: String,
        /// The key.
        file: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Others changed it again and again meanwhile.
    #[error("cannot {step}: others keep changing it")]
    Conflict {
        /// What was wanted, in words.
        step: String,
    },
    /// There was no answer in time.
    #[error("cannot {step}: no answer in time")]
    Late {
        /// What was wanted, in words.
        step: String,
    },
    /// Anything else.
    #[error("cannot {step}")]
    Api {
        /// What was wanted, in words.
        step: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
}

/// The code of a refusal; none where there was no answer.
pub(super) fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Whether somebody else changed the object meanwhile.
pub(super) fn is_conflict(error: &kube::Error) -> bool {
    code(error) == Some(409)
}

impl Error {
    /// Of what the API server, or the way to it, says.
    pub(super) fn of(step: &str, outcome: Result<kube::Error, Elapsed>) -> Self {
        let step = step.to_owned();
        match outcome {
            Err(Elapsed { .. }) => Self::Late { step },
            Ok(kube::Error::Api(status)) if [401, 403].contains(&status.code) => Self::Forbidden {
                step,
                words: status.message,
            },
            Ok(source) => Self::Api {
                step,
                source: Box::new(source),
            },
        }
    }
}
