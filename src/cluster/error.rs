//! Errors of the API server, with advice.

use crate::base::{Elapsed, error_chain};

/// Most characters of a response that are shown to a user. A proxy may respond with a page of HTML.
const LONGEST_WORDS: usize = 200;

/// A failed request. A `step` is what the request does, as a verb phrase; `words` are the API server's.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ServiceAccount lacks a permission. The API server's message names account, verb and resource.
    #[error(
        "cannot {step}: {words}. Grant it: the chart does (docs/reference/kubernetes-rights.md), a controller of your \
         own needs a Role or ClusterRole with it"
    )]
    Forbidden { step: String, words: String },
    /// The API server rejects the credentials.
    #[error(
        "cannot {step}: the API server does not accept the token: {words}. It has expired, or belongs to another cluster \
         or a deleted ServiceAccount. Check the node's clock, and that the pod's ServiceAccount exists. A new pod gets a new token; \
         with --kubeconfig, renew the credentials of its user"
    )]
    Unauthorized { step: String, words: String },
    /// The ConfigMap of the instance types does not exist.
    #[error("cannot {step}: it does not exist; run `helm upgrade`, which creates it, or create an empty one")]
    Missing { step: String },
    /// The API server has the group and not these resources, as after an incomplete upgrade of the CRDs.
    #[error(
        "cannot list {plural}: the API server has the group {group} without them. Install or upgrade all CRDs of snapshots"
    )]
    NotServed { plural: &'static str, group: &'static str },
    /// The existing content is not the driver's. It is never overwritten.
    #[error(
        "cannot {step}: its {file} is invalid and is left unchanged: {reason}. Correct it, or remove {file} \
         (kubectl edit), so that it is written again"
    )]
    InvalidContent {
        step: String,
        file: &'static str,
        reason: String,
    },
    /// Other writers changed the object during every attempt.
    #[error(
        "cannot {step}: other writers keep changing it. It is retried automatically; if the error persists, find the \
         writer with `kubectl get --show-managed-fields -o yaml`"
    )]
    Conflict { step: String },
    /// The deadline passed without a response.
    #[error(
        "cannot {step}: no response in time. It is retried automatically; if the error persists, check that the API \
         server is reachable from this pod, and that a NetworkPolicy allows it (`networkPolicy.apiPorts` of the chart)"
    )]
    TimedOut { step: String },
    /// The API server rejects the request for another reason.
    #[error("cannot {step}: the API server rejects it with {code}: {words}; it is retried automatically")]
    Rejected { step: String, code: u16, words: String },
    /// The API server cannot be reached, or its response cannot be read.
    #[error(
        "cannot {step}. It is retried automatically; if the error persists, check that the API server is reachable from \
         this pod, and that a NetworkPolicy allows it (`networkPolicy.apiPorts` of the chart)"
    )]
    Api {
        step: String,
        #[source]
        source: Box<kube::Error>,
    },
}

/// The HTTP status of a rejection; none without a response.
pub(super) fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

impl Error {
    pub(super) fn of(step: &str, outcome: Result<kube::Error, Elapsed>) -> Self {
        let step = step.to_owned();
        match outcome {
            Err(Elapsed { .. }) => Self::TimedOut { step },
            Ok(kube::Error::Api(status)) => {
                let (code, words) = (status.code, status.message);
                match code {
                    401 => Self::Unauthorized { step, words },
                    403 => Self::Forbidden { step, words },
                    _ => Self::Rejected { step, code, words },
                }
            }
            Ok(source) => Self::Api {
                step,
                source: Box::new(source),
            },
        }
    }

    /// Whether nothing can be read: the API server is unreachable, or does not accept the credentials.
    pub fn is_general(&self) -> bool {
        matches!(
            self,
            Self::Unauthorized { .. } | Self::TimedOut { .. } | Self::Api { .. }
        )
    }

    /// The error with advice for the user of a kubeconfig. `Display` advises the operator of a pod.
    pub fn for_user(&self) -> String {
        match self {
            Self::Forbidden { step, words } => {
                format!("cannot {step}: {words}. Grant the user of the kubeconfig this right")
            }
            Self::Unauthorized { step, words } => format!(
                "cannot {step}: the API server does not accept the credentials: {words}. Renew those of the kubeconfig"
            ),
            Self::TimedOut { step } => {
                format!("cannot {step}: no response in time. Check whether the API server is reachable")
            }
            Self::Api { step, source } => format!(
                "cannot {step}: {}. Check whether the API server is reachable",
                error_chain(source.as_ref())
            ),
            Self::Rejected { step, code, words } => {
                let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
                let words: String = words.chars().take(LONGEST_WORDS).collect();
                format!("cannot {step}: the API server responds with {code}: {words}")
            }
            error => error_chain(error),
        }
    }
}

/// Whether the object or its namespace was deleted, or the namespace is terminating.
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

    #[test]
    fn a_user_is_not_advised_about_pods() {
        let long = format!("<html>\n  {}", "é".repeat(300));
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "code": 502, "message": long});
        let error = kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()));
        let text = Error::of("do it", Ok(error)).for_user();
        let words = text
            .strip_prefix("cannot do it: the API server responds with 502: ")
            .unwrap();
        assert_eq!(words, format!("<html> {}", "é".repeat(193)));
        for error in [
            Ok(refused(401, "")),
            Ok(refused(403, "")),
            Ok(refused(422, "")),
            Err(Elapsed),
        ] {
            let text = Error::of("do it", error).for_user();
            assert!(!text.contains("pod") && !text.contains("retried"), "{text}");
        }
    }

    fn refused(code: u16, cause: &str) -> kube::Error {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
            "reason": "x", "message": "in its words", "details": {"causes": [{"reason": cause}]},
        });
        kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()))
    }

    #[test]
    fn each_rejection_has_advice() {
        for (code, expected) in [
            (401, "Check the node's clock"),
            (403, "Grant it"),
            (422, "rejects it with 422"),
        ] {
            let error = Error::of("do it", Ok(refused(code, ""))).to_string();
            assert!(error.contains(expected) && error.contains("in its words"), "{error}");
            assert_eq!(error.contains("Grant"), code == 403, "{error}");
        }
        let late = Error::of("do it", Err(Elapsed)).to_string();
        assert!(late.contains("`networkPolicy.apiPorts`"), "{late}");
    }

    #[test]
    fn a_deleted_object_or_namespace_is_distinguished_from_a_missing_permission() {
        assert!(is_gone(&refused(404, "")));
        assert!(is_gone(&refused(403, "NamespaceTerminating")));
        assert!(!is_gone(&refused(403, "")));
    }
}
