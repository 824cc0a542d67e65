//! How the API server can fail, and what to do about it.

use crate::base::{Elapsed, error_chain};

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
    /// The API server does not know who asks.
    #[error(
        "cannot {step}: the API server does not take the token: {words}. It has expired, or is of another cluster or of a \
         ServiceAccount that is gone: is the machine's clock right, and is there the ServiceAccount that the pod names? \
         A new pod gets a new token; with --kubeconfig, its user needs new credentials"
    )]
    Unknown {
        /// What was wanted, in words.
        step: String,
        /// The API server's words.
        words: String,
    },
    /// What is to be changed is not there.
    #[error("cannot {step}: it is not there; {todo}")]
    Missing {
        /// What was wanted, in words.
        step: String,
        todo: &'static str,
    },
    /// What is there is a text of another kind. It may be somebody's work, and is not written over.
    #[error(
        "cannot {step}: its {file} is invalid and is left unchanged: {reason}. Correct it, or remove {file} \
         (kubectl edit), so that it is written again"
    )]
    Foreign {
        /// What was wanted, in words.
        step: String,
        file: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Others changed it again and again meanwhile.
    #[error(
        "cannot {step}: others keep changing it; it is tried again. If that stays so, see who writes it: kubectl get \
         --show-managed-fields -o yaml"
    )]
    Conflict {
        /// What was wanted, in words.
        step: String,
    },
    /// There was no answer in time.
    #[error(
        "cannot {step}: no answer in time; it is tried again. Is the API server reachable from this pod? A NetworkPolicy must let \
         it through (`networkPolicy.apiPorts` of the chart)"
    )]
    Late {
        /// What was wanted, in words.
        step: String,
    },
    /// The API server refuses it for another reason.
    #[error("cannot {step}: the API server refuses it with {code}: {words}; it is tried again")]
    Refused {
        /// What was wanted, in words.
        step: String,
        /// The status of HTTP.
        code: u16,
        /// The API server's words.
        words: String,
    },
    /// The response is unreadable.
    #[error(
        "cannot {step}; it is tried again. Is the API server reachable from this pod? A NetworkPolicy must let it through \
         (`networkPolicy.apiPorts` of the chart)"
    )]
    Api {
        /// What was wanted, in words.
        step: String,
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
            Ok(kube::Error::Api(status)) => {
                let (code, words) = (status.code, status.message);
                match code {
                    401 => Self::Unknown { step, words },
                    403 => Self::Forbidden { step, words },
                    _ => Self::Refused { step, code, words },
                }
            }
            Ok(source) => Self::Api {
                step,
                source: Box::new(source),
            },
        }
    }
}

impl Error {
    /// Whether nothing can be read: the API server is unreachable, or does not accept the credentials.
    #[must_use]
    pub fn is_general(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::Late { .. } | Self::Api { .. })
    }

    /// The error with advice for the user of a kubeconfig. `Display` advises the operator of a pod.
    #[must_use]
    pub fn for_user(&self) -> String {
        match self {
            Self::Forbidden { step, words } => {
                format!("cannot {step}: {words}. Grant the user of the kubeconfig this right")
            }
            Self::Unknown { step, words } => format!(
                "cannot {step}: the API server does not accept the credentials: {words}. Renew those of the kubeconfig"
            ),
            Self::Late { step } => {
                format!("cannot {step}: no response in time. Check whether the API server is reachable")
            }
            Self::Api { step, source } => format!(
                "cannot {step}: {}. Check whether the API server is reachable",
                error_chain(source.as_ref())
            ),
            error => error_chain(error),
        }
    }
}

/// Whether what was to be written belongs to something that is gone, or is just going: its namespace, or itself.
pub(super) fn is_gone(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let ends = |reason: &str| reason == "NamespaceTerminating";
    status.code == 404 || causes.map(|cause| cause.reason.as_str()).any(ends)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(code: u16, cause: &str) -> kube::Error {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
            "reason": "x", "message": "in its words", "details": {"causes": [{"reason": cause}]},
        });
        kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()))
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        for (code, expected) in [
            (401, "is the machine's clock right"),
            (403, "Grant it"),
            (422, "refuses it with 422"),
        ] {
            let error = Error::of("do it", Ok(refused(code, ""))).to_string();
            assert!(error.contains(expected) && error.contains("in its words"), "{error}");
            assert_eq!(error.contains("Grant"), code == 403, "{error}");
        }
        let late = Error::of("do it", Err(Elapsed)).to_string();
        assert!(late.contains("`networkPolicy.apiPorts`"), "{late}");
    }

    #[test]
    fn what_is_gone_or_going_is_told_from_what_is_forbidden() {
        assert!(is_gone(&refused(404, "")));
        assert!(is_gone(&refused(403, "NamespaceTerminating")));
        assert!(!is_gone(&refused(403, "")));
    }
}
