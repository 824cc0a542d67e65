//! Access to the API server.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::Status;
use kube::{Client, Config};
use serde_saphyr::UserMessageFormatter;

use super::error::{Error, code};
use crate::base::{Deadline, error_chain, without_user_info};

/// Timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(15);

/// HTTP status of a missing object.
pub(super) const NOT_FOUND: u16 = 404;

/// HTTP status of a write of an object that has changed since it was read.
pub(super) const CONFLICT: u16 = 409;

/// The API server of this cluster. Clones share its connections.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
}

impl Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

/// Why the settings do not lead to an API server.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(String);

impl Cluster {
    /// The API server of the kubeconfig, or that of this pod, with the token of its ServiceAccount, which is reloaded
    /// when it changes. Sends no request.
    pub async fn new(kubeconfig: Option<&Path>) -> Result<Self, ConnectError> {
        let config = match kubeconfig {
            Some(file) => from_file(file, None).await?,
            None => Config::incluster().map_err(|error| no_pod(&error))?,
        };
        Self::of(config)
    }

    /// As [`Self::new`], with a context of the kubeconfig other than the current one; without a kubeconfig, the one
    /// that kubectl would use.
    pub async fn for_operator(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Self, ConnectError> {
        let config = match (kubeconfig, context) {
            (Some(file), context) => from_file(file, context).await?,
            (None, Some(context)) => {
                let wrong = |error| {
                    let reason = reason(&error);
                    ConnectError(format!(
                        "the kubeconfig of kubectl cannot be used: {reason}; set --kubeconfig"
                    ))
                };
                let read = Kubeconfig::read().map_err(wrong)?;
                of_context(read, Some(context), wrong).await?
            }
            (None, None) => {
                let config = Config::infer().await;
                config.map_err(|error| no_pod(&error))?
            }
        };
        Self::of(config)
    }

    fn of(config: Config) -> Result<Self, ConnectError> {
        let url = without_user_info(&config.cluster_url.to_string());
        let client = Client::try_from(config).map_err(|error| {
            let reason = without_user_info(&error_chain(&error));
            ConnectError(format!("no client can be made for the API server at {url}: {reason}"))
        })?;
        Ok(Self { client })
    }

    /// The namespace of the ServiceAccount, or that of the kubeconfig's context.
    pub fn namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// The text at a path of the API server; none if it does not exist.
    pub(super) async fn text(&self, step: &str, path: &str) -> Result<Option<String>, Error> {
        let request = http::Request::get(path).body(kube::client::Body::empty());
        let request = request.expect("encoded names are valid in paths");
        let call = async {
            let response = self.client().send(request).await?;
            let status = response.status();
            let body = response.into_body().collect_bytes().await?;
            if status.is_success() {
                let text = String::from_utf8(body.to_vec());
                return text.map_err(kube::Error::FromUtf8);
            }
            // Of kube's own methods, an error page in JSON that is not a Status gets the code 0.
            let text = String::from_utf8_lossy(&body);
            let status = api_status(status.as_u16(), &text);
            Err(kube::Error::Api(Box::new(status)))
        };
        request_unless(&[NOT_FOUND], step, call).await
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }
}

/// The Status of an error response, or one with its text.
fn api_status(code: u16, text: &str) -> Status {
    match serde_json::from_str::<Status>(text) {
        Ok(status) if status.code != 0 => status,
        _ => Status::failure(text.trim(), "").with_code(code),
    }
}

/// No kubeconfig is given, and this is not a pod with a token.
fn no_pod(error: &(dyn std::error::Error + 'static)) -> ConnectError {
    ConnectError(format!(
        "not running in a pod with a ServiceAccount token: in a pod, mount it at \
         /var/run/secrets/kubernetes.io/serviceaccount; elsewhere, set --kubeconfig: {}",
        error_chain(error)
    ))
}

async fn from_file(file: &Path, context: Option<&str>) -> Result<Config, ConnectError> {
    let wrong = |error| {
        let (file, reason) = (file.display(), reason(&error));
        ConnectError(format!("--kubeconfig {file} cannot be used: {reason}"))
    };
    let read = Kubeconfig::read_from(file).map_err(wrong)?;
    of_context(read, context, wrong).await
}

/// The error without secrets: that of the YAML parser shows the lines around the mistake.
fn reason(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => {
            let without_lines = error.without_snippet();
            without_lines.render_with_formatter(&UserMessageFormatter)
        }
        other => without_user_info(&error_chain(other)),
    }
}

/// The configuration of a context; without one, of the current context.
async fn of_context(
    kubeconfig: Kubeconfig,
    context: Option<&str>,
    wrong: impl FnOnce(KubeconfigError) -> ConnectError,
) -> Result<Config, ConnectError> {
    let contexts = kubeconfig.contexts.iter();
    let known: Vec<_> = contexts.map(|known| known.name.clone()).collect();
    if let Some(context) = context.filter(|context| !known.iter().any(|known| known == context)) {
        let known = if known.is_empty() {
            "none".to_owned()
        } else {
            known.join(", ")
        };
        let problem = format!("--context {context} is not a context of the kubeconfig: it has {known}");
        return Err(ConnectError(problem));
    }
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.map_err(wrong)
}

/// The result of a call, with a deadline. Errors name the step, and advise.
pub(super) async fn request<T>(step: &str, call: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
    match soon().bound(call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Error::of(step, Ok(error))),
        Err(elapsed) => Err(Error::of(step, Err(elapsed))),
    }
}

/// As [`request`]; none if the API server rejects the call with one of these codes.
pub(super) async fn request_unless<T>(
    codes: &[u16],
    step: &str,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<Option<T>, Error> {
    let call = async {
        match call.await {
            Err(error) if code(&error).is_some_and(|code| codes.contains(&code)) => Ok(None),
            outcome => outcome.map(Some),
        }
    };
    request(step, call).await
}

/// The deadline of one request.
pub(super) fn soon() -> Deadline {
    Deadline::after(TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_page_that_is_not_a_status_keeps_its_code() {
        let page = r#"{"error": "no history"}"#;
        assert_eq!(api_status(404, page).code, 404);
        assert_eq!(api_status(503, "busy\n").message, "busy");
        let status = r#"{"kind": "Status", "code": 403, "message": "forbidden"}"#;
        assert_eq!(api_status(500, status).code, 403);
    }

    #[tokio::test]
    async fn errors_of_a_kubeconfig_contain_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("kubeconfig");
        let broken = "users:\n- name: me\n  user:\n    token: hidden-token\n   name: [\n";
        std::fs::write(&file, broken).unwrap();
        let error = from_file(&file, None).await.unwrap_err().to_string();
        assert!(error.contains("line"), "{error}");
        assert!(!error.contains("hidden"), "{error}");
        let proxy = "\"http://127.0.0.1:1\", \"proxy-url\": \"http://me:hidden-word@127.0.0.1:9\"";
        let text = TWO_CONTEXTS.replacen("\"http://127.0.0.1:1\"", proxy, 1);
        std::fs::write(&file, text).unwrap();
        let error = Cluster::new(Some(&file)).await.unwrap_err().to_string();
        assert!(error.contains("127.0.0.1:9"), "{error}");
        assert!(!error.contains("hidden"), "{error}");
    }

    const TWO_CONTEXTS: &str = r#"{"clusters": [
        {"name": "one", "cluster": {"server": "http://127.0.0.1:1"}},
        {"name": "two", "cluster": {"server": "http://127.0.0.1:2"}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "first", "context": {"cluster": "one", "user": "me"}},
            {"name": "second", "context": {"cluster": "two", "user": "me", "namespace": "disks"}}],
        "current-context": "first"}"#;

    #[tokio::test]
    async fn a_context_selects_the_cluster() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("kubeconfig");
        std::fs::write(&file, TWO_CONTEXTS).unwrap();
        for (context, port, namespace) in [
            (None, 1, "default"),
            (Some("first"), 1, "default"),
            (Some("second"), 2, "disks"),
        ] {
            let config = from_file(&file, context).await.unwrap();
            assert_eq!(config.cluster_url.port_u16(), Some(port), "{context:?}");
            assert_eq!(config.default_namespace, namespace);
        }
        let error = from_file(&file, Some("third")).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "--context third is not a context of the kubeconfig: it has first, second"
        );
    }
}
