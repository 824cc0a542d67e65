//! `--http-authorization token-review`: who may read the pages of the HTTP port, also over TLS.

use std::path::Path;

use reqwest::{Certificate, StatusCode};

use crate::common::process::Process;
use crate::common::wait::until;
use crate::kubernetes::kit::{Kit, SOON};

const METRICS: &str = "/metrics";

/// The address of the HTTP port.
pub(crate) async fn address(controller: &Process) -> String {
    until("the HTTP port is served", SOON, async || {
        let stderr = controller.stderr();
        let line = stderr.lines().find(|line| line.contains("serving /healthz"))?;
        let address = line.split("address=").nth(1)?;
        Some(address.split_whitespace().next()?.to_owned())
    })
    .await
}

pub(crate) async fn get(client: &reqwest::Client, url: &str, token: Option<&str>) -> (StatusCode, String) {
    let mut request = client.get(url);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let response = request.send().await.unwrap();
    (response.status(), response.text().await.unwrap())
}

pub(crate) fn client() -> reqwest::ClientBuilder {
    reqwest::Client::builder().timeout(SOON).no_proxy()
}

#[tokio::test]
async fn pages_need_a_token_whose_user_may_get_the_path() {
    let mut kit = Kit::new(&[]).await;
    kit.api.change(|world| {
        let pages = vec![METRICS.to_owned()];
        let users = [
            ("good-token", ("prometheus", pages)),
            ("weak-token", ("somebody", Vec::new())),
        ];
        world.users = users
            .map(|(token, (user, pages))| (token.to_owned(), (user.to_owned(), pages)))
            .into();
    });
    let kubeconfig = format!("--http-kubeconfig={}", kit.kubeconfig().display());
    let flags = [
        "--http-address=127.0.0.1:0",
        "--http-authorization=token-review",
        &kubeconfig,
    ];
    let (controller, _) = kit.ready(&flags).await;
    let http = format!("http://{}", address(&controller).await);
    let client = client().build().unwrap();
    let (metrics, probe) = (format!("{http}{METRICS}"), format!("{http}/readyz"));
    for (token, status, text) in [
        (None, StatusCode::UNAUTHORIZED, "bearer token"),
        (Some("unknown"), StatusCode::UNAUTHORIZED, "bearer token"),
        (Some("weak-token"), StatusCode::FORBIDDEN, "nonResourceURL /metrics"),
        (Some("good-token"), StatusCode::OK, "diskplugin_build_info"),
    ] {
        let (got, body) = get(&client, &metrics, token).await;
        assert!(got == status && body.contains(text), "{token:?}: {got} {body}");
    }
    let volumes = format!("{http}/debug/volumes");
    let (status, _) = get(&client, &volumes, Some("good-token")).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert_eq!(get(&client, &probe, None).await.0, StatusCode::OK);

    // A decision is reused, so a scrape does not depend on the API server each time.
    let before = kit.api.count("POST");
    assert_eq!(get(&client, &metrics, Some("good-token")).await.0, StatusCode::OK);
    assert_eq!(kit.api.count("POST"), before);
    kit.api.stop();
    assert_eq!(get(&client, &metrics, Some("good-token")).await.0, StatusCode::OK);
    let (status, _) = get(&client, &metrics, Some("new-token")).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let log = controller.stderr();
    assert!(!log.contains("good-token") && !log.contains("new-token"), "{log}");
}

/// Writes a new self-signed certificate for 127.0.0.1 and its key. Returns the certificate.
fn write_certificate(dir: &Path) -> Certificate {
    let issued = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(dir.join("tls.key"), issued.signing_key.serialize_pem()).unwrap();
    std::fs::write(dir.join("tls.crt"), issued.cert.pem()).unwrap();
    Certificate::from_pem(issued.cert.pem().as_bytes()).unwrap()
}

#[tokio::test]
async fn the_port_serves_https_and_takes_a_replaced_certificate() {
    let kit = Kit::new(&[]).await;
    let first = write_certificate(kit.dir.path());
    let file = |name: &str| kit.dir.path().join(name).display().to_string();
    let (certificate, key) = (file("tls.crt"), file("tls.key"));
    let flags = [
        "--http-address=127.0.0.1:0",
        &format!("--http-tls-cert-file={certificate}"),
        &format!("--http-tls-key-file={key}"),
    ];
    let (controller, _) = kit.ready(&flags).await;
    let url = format!("https://{}/metrics", address(&controller).await);
    let trusting = |certificate: &Certificate| client().tls_certs_only([certificate.clone()]).build().unwrap();
    let (status, text) = get(&trusting(&first), &url, None).await;
    assert!(status == StatusCode::OK && text.ends_with("# EOF\n"), "{status} {text}");

    let second = write_certificate(kit.dir.path());
    until("the new certificate is used", SOON, async || {
        let response = trusting(&second).get(&url).send().await;
        response.is_ok().then_some(())
    })
    .await;
    assert!(trusting(&first).get(&url).send().await.is_err());
}
