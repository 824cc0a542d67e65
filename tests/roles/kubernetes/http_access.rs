//! `--http-authorization token-review`: who may read the pages of the HTTP port, also over TLS.

use std::path::Path;

use reqwest::Certificate;

use crate::http_client::{address, builder, client, response};
use crate::kubernetes::kit::Kit;
use crate::running::{HTTP, wait};
use crate::text::{assert_has, assert_lacks};

const METRICS: &str = "/metrics";

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
    let (controller, _) = kit
        .ready(&[HTTP, "--http-authorization=token-review", &kubeconfig])
        .await;
    let http = address(&controller).await;
    let page = async |path: &str, token: Option<&str>| {
        let request = client().get(format!("{http}{path}"));
        response(match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        })
        .await
    };
    for (path, token, status, text) in [
        (METRICS, None, 401, "bearer token"),
        (METRICS, Some("unknown"), 401, "bearer token"),
        (METRICS, Some("weak-token"), 403, "nonResourceURL /metrics"),
        (METRICS, Some("good-token"), 200, "diskplugin_build_info"),
        ("/debug/volumes", Some("good-token"), 403, ""),
        ("/readyz", None, 200, ""),
    ] {
        let page = page(path, token).await;
        assert_eq!(page.status, status, "{path} {token:?}: {page:?}");
        assert_has(&page.text, &[text]);
    }

    // A decision is reused, so a scrape does not depend on the API server each time.
    let before = kit.api.count("POST");
    assert_eq!(page(METRICS, Some("good-token")).await.status, 200);
    assert_eq!(kit.api.count("POST"), before);
    kit.api.stop();
    assert_eq!(page(METRICS, Some("good-token")).await.status, 200);
    assert_eq!(page(METRICS, Some("new-token")).await.status, 503);
    assert_lacks(&controller.stderr(), &["good-token", "new-token"]);
}

/// Writes a new self-signed certificate for 127.0.0.1 and its key. Returns the certificate.
fn write_certificate(dir: &Path) -> Certificate {
    let issued = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(dir.join("tls.key"), issued.signing_key.serialize_pem()).unwrap();
    std::fs::write(dir.join("tls.crt"), issued.cert.pem()).unwrap();
    Certificate::from_pem(issued.cert.pem().as_bytes()).unwrap()
}

#[tokio::test]
async fn the_port_serves_https_and_uses_a_replaced_certificate() {
    let kit = Kit::new(&[]).await;
    let first = write_certificate(kit.dir.path());
    let file = |name: &str| kit.dir.path().join(name).display().to_string();
    let certificate = format!("--http-tls-cert-file={}", file("tls.crt"));
    let key = format!("--http-tls-key-file={}", file("tls.key"));
    let (controller, _) = kit.ready(&[HTTP, &certificate, &key]).await;
    let url = format!("{}/metrics", address(&controller).await.replace("http:", "https:"));
    let request = |certificate: &Certificate| {
        let client = builder().tls_certs_only([certificate.clone()]).build();
        client.unwrap().get(&url)
    };
    let page = response(request(&first)).await;
    assert!(page.status == 200 && page.text.ends_with("# EOF\n"), "{page:?}");

    let second = write_certificate(kit.dir.path());
    wait("the new certificate is used", async || {
        request(&second).send().await.is_ok()
    })
    .await;
    request(&first).send().await.unwrap_err();
}
