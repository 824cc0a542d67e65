//! The HTTP port: its address, unknown paths and methods, slow connections.

use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::shell::{has, sh};
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

/// Probes of kubelet use the address of the pod, which is of IPv4 or IPv6.
#[tokio::test]
async fn all_addresses_are_served_on_machines_with_ipv4_ipv6_or_both() {
    let needs = "test $(id -u) = 0 && unshare --net ip link && curl --version && python3 --version";
    if !has("http_port", needs, "root, unshare, ip, curl and Python are required").await {
        return;
    }
    let (sysctl, both, ipv4) = ("/proc/sys/net/ipv6", "200 200", "200 000");
    let without_ipv6 = concat!("python3 ", env!("CARGO_MANIFEST_DIR"), "/tests/roles/without_ipv6.py");
    for (address, machine, wrapper, served) in [
        ("[::]", String::new(), "", both),
        ("[::]", format!("echo 1 >{sysctl}/bindv6only"), "", both),
        ("[::]", "ip address delete 127.0.0.1/8 dev lo".to_owned(), "", "000 200"),
        ("[::]", format!("echo 1 >{sysctl}/conf/all/disable_ipv6"), "", ipv4),
        ("[::]", String::new(), without_ipv6, ipv4),
        ("0.0.0.0", String::new(), "", ipv4),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        let (driver, socket) = (env!("CARGO_BIN_EXE_diskplugin"), dir.path().join("csi.sock"));
        let text = format!(
            "ip link set lo up; {machine}
             {wrapper} {driver} node --zone=cn-beijing-b --node-id=i-1 --endpoint=unix://{} --http-address={address}:9808 &
             get() {{ curl -gs -o /dev/null -w '%{{http_code}} ' http://$1:9808/healthz; }}
             until get 127.0.0.1 || get [::1]; do sleep 0.1; done >/dev/null
             get 127.0.0.1; get [::1]; kill $!",
            socket.display()
        );
        std::fs::write(&script, text).unwrap();
        let responses = sh(&format!("timeout 60 unshare --net sh {}", script.display())).await;
        assert!(
            responses.ends_with(served),
            "{address} with {machine:?} {wrapper}: {responses}"
        );
    }
}
