//! The HTTP port: its address, unknown paths and methods, slow connections.

use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::health::is_root;
use crate::http_client::request;
use crate::running::{HTTP, Running, SOON, node};
use crate::text::{assert_failed, assert_has};

#[tokio::test]
async fn other_paths_and_methods_are_rejected() {
    let node = Running::node(&[HTTP]).await;
    let http = node.http().await;
    for path in ["/", "/metrics/", "/healthz/"] {
        let response = node.get(path).await;
        assert_eq!(response.status, 404, "{path}: {response:?}");
        assert_has(&response.text, &["/healthz", "/readyz"]);
    }
    // Only root can mount.
    let ready = if is_root() { 200 } else { 503 };
    assert_eq!(node.get("/readyz?x=1/healthz").await.status, ready);
    for (path, status) in [("/healthz", 200), ("/readyz", ready)] {
        assert_eq!(request(Method::POST, &http, path).await.status, 405);
        let head = request(Method::HEAD, &http, path).await;
        assert_eq!((head.status, head.text.as_str()), (status, ""));
    }
}

#[tokio::test]
async fn connections_with_incomplete_requests_are_closed() {
    let node = Running::node(&[HTTP]).await;
    let http = node.http().await;
    let mut slow = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(http.trim_start_matches("http://")).await.unwrap();
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost:").await.unwrap();
        slow.push(stream);
    }
    assert_eq!(node.get("/healthz").await.status, 200);
    for mut stream in slow {
        let mut rest = Vec::new();
        let end = tokio::time::timeout(SOON, stream.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "the connection is still open: {rest:?}");
        assert!(!rest.starts_with(b"HTTP/1.1 200"), "{rest:?}");
    }
}

#[tokio::test]
async fn an_address_in_use_is_reported_with_its_flag() {
    let dir = tempfile::tempdir().unwrap();
    let in_use = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let flag = format!("--http-address={}", in_use.local_addr().unwrap());
    let start = node(&dir.path().join("csi.sock")).args([flag]);
    assert_failed(&start.ended().await, 1, &["--http-address"]);
}
