//! The HTTP port: its address, unknown paths and methods, slow connections.

use std::time::Duration;

use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::csi::{endpoint, socket};
use crate::common::process::diskplugin;
use crate::health::{is_root, node};
use crate::http_client::{address, get, request};

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn other_paths_and_methods_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let (node, _channel) = node(&socket).ready(&socket).await;
    let http = address(&node).await;
    // Only root can mount.
    let ready = if is_root() { 200 } else { 503 };
    for path in ["/", "/metrics/", "/healthz/", "/readyz?x=1/healthz"] {
        let response = get(&http, path).await;
        let wanted = if path.starts_with("/readyz?") { ready } else { 404 };
        assert_eq!(response.status, wanted, "{path}: {response:?}");
        if wanted == 404 {
            assert!(
                response.text.contains("/healthz") && response.text.contains("/readyz"),
                "{response:?}"
            );
        }
    }
    for (path, status) in [("/healthz", 200), ("/readyz", ready)] {
        assert_eq!(request(Method::POST, &http, path).await.status, 405);
        let head = request(Method::HEAD, &http, path).await;
        assert_eq!((head.status, head.text.as_str()), (status, ""));
    }
}

#[tokio::test]
async fn connections_with_incomplete_requests_are_closed() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let (node, _channel) = node(&socket).ready(&socket).await;
    let http = address(&node).await;
    let server = http.trim_start_matches("http://");
    let mut slow = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(server).await.unwrap();
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost:").await.unwrap();
        slow.push(stream);
    }
    assert_eq!(get(&http, "/healthz").await.status, 200);
    for mut stream in slow {
        let mut rest = Vec::new();
        let end = tokio::time::timeout(SOON, stream.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "the connection is still open: {rest:?}");
        assert!(!rest.starts_with(b"HTTP/1.1 200"), "{rest:?}");
    }
}

#[tokio::test]
async fn an_invalid_address_or_one_in_use_is_reported_with_its_flag() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let in_use = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = in_use.local_addr().unwrap().to_string();
    for (value, code) in [(address.as_str(), 1), (":9808", 64), ("9808", 64)] {
        let start = diskplugin([
            "node",
            "--zone=cn-beijing-b",
            "--node-id=i-1",
            &format!("--http-address={value}"),
            &endpoint(&socket),
        ]);
        let ended = start.ended().await;
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert!(ended.stderr.contains("--http-address"), "{}", ended.stderr);
    }
}
