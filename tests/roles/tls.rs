//! `--ca-bundle`: HTTPS to endpoints and through proxies whose certificates are issued by an authority of a private
//! network, and the failures of other certificates.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use diskplugin::base::Tasks;
use diskplugin::csi::proto::controller_client::ControllerClient;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::common::csi::{create, endpoint, volume, within};
use crate::common::fake::Fake;
use crate::common::process::{Start, diskplugin};
use crate::running::{NO_METADATA, Running};
use crate::text::{assert_failed, assert_has, assert_lacks};

/// An authority with the organization Example.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate chain and its key, in PEM format.
type Chain = (String, String);

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "127.0.0.2".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.distinguished_name.push(DnType::OrganizationName, "Example");
    params
}

fn authority(name: &str, parent: Option<&Authority>) -> Authority {
    let (mut params, key) = (params(name), KeyPair::generate().unwrap());
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = match parent {
        Some(parent) => params.signed_by(&key, &parent.issuer),
        None => params.self_signed(&key),
    };
    let pem = certificate.unwrap().pem();
    let issuer = Issuer::new(params, key);
    Authority { issuer, pem }
}

fn issued(by: &Authority, change: impl FnOnce(&mut CertificateParams)) -> Chain {
    let (mut params, key) = (params("endpoint"), KeyPair::generate().unwrap());
    change(&mut params);
    let certificate = params.signed_by(&key, &by.issuer).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// Terminates TLS in front of a server, or as an HTTPS proxy.
async fn serve((chain, key): &Chain, server: Option<SocketAddr>) -> SocketAddr {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let config = config
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth();
    let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(chain.unwrap(), key).unwrap()));
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port()));
    let tasks = Tasks::default();
    tasks.clone().spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tasks.spawn(async move {
                // The client rejects some certificates.
                let _ = forward(acceptor, client, server).await;
            });
        }
    });
    address
}

async fn forward(acceptor: TlsAcceptor, client: TcpStream, server: Option<SocketAddr>) -> std::io::Result<()> {
    let mut client = acceptor.accept(client).await?;
    let mut server = match server {
        Some(server) => TcpStream::connect(server).await?,
        None => {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await?);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            client.flush().await?;
            TcpStream::connect(head.split(' ').nth(1).unwrap_or_default()).await?
        }
    };
    copy_bidirectional(&mut client, &mut server).await.map(|_| ())
}

fn address(fake: &Fake) -> SocketAddr {
    fake.url.trim_start_matches("http://").parse().unwrap()
}

fn file(dir: &TempDir, content: impl AsRef<[u8]>) -> PathBuf {
    let file = dir.path().join("ca.crt");
    std::fs::write(&file, content).unwrap();
    file
}

fn trusting(bundle: &Path) -> String {
    format!("--ca-bundle={}", bundle.display())
}

fn doctor() -> Start {
    without_key().keys()
}

/// It fails without a request to the cloud.
fn without_key() -> Start {
    diskplugin(["doctor", "--scope=cloud", "--region=cn-beijing", NO_METADATA])
}

const UNTRUSTED: [&str; 2] = ["TLS_UNTRUSTED", "--ca-bundle"];
const INVALID: [&str; 2] = ["TLS_CERTIFICATE_INVALID", "renew or replace"];

#[tokio::test]
async fn a_rejected_certificate_is_named_with_host_issuer_reason_and_fitting_advice() {
    let fake = Fake::start(&[]).await;
    let (root, other, same_name) = (
        authority("Root", None),
        authority("Other", None),
        authority("Root", None),
    );
    let middle = authority("Middle", Some(&root));
    let good = issued(&root, |_| {});
    let of_middle = issued(&middle, |_| {});
    let with_middle = (format!("{}{}", of_middle.0, middle.pem), of_middle.1.clone());
    let expired = issued(&root, |params| params.not_after = date_time_ymd(2020, 1, 1));
    let future = issued(&root, |params| params.not_before = date_time_ymd(4000, 1, 1));
    let elsewhere = issued(&root, |params| params.subject_alt_names.clear());
    let key = KeyPair::generate().unwrap();
    let mut own = params("Own");
    own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own = (own.self_signed(&key).unwrap().pem(), key.serialize_pem());
    let bundle = Some(root.pem.as_str());
    let of_root = "the certificate of 127.0.0.1, issued by \\\"CN=Root, O=Example\\\", is rejected: ";
    let cases = [
        (&good, bundle, None),
        (&with_middle, bundle, None),
        (&good, None, Some((UNTRUSTED, "the issuer is not trusted"))),
        (&good, Some(other.pem.as_str()), Some((UNTRUSTED, of_root))),
        (&good, Some(same_name.pem.as_str()), Some((UNTRUSTED, of_root))),
        (
            &of_middle,
            bundle,
            Some((UNTRUSTED, "issued by \\\"CN=Middle, O=Example\\\"")),
        ),
        (&expired, bundle, Some((INVALID, "certificate expired"))),
        (&future, bundle, Some((INVALID, "certificate not valid yet"))),
        (&elsewhere, bundle, Some((INVALID, "not valid for name"))),
        (&own, Some(own.0.as_str()), Some((INVALID, "CaUsedAsEndEntity"))),
    ];
    let (mut running, mut dirs) = (Vec::new(), Vec::new());
    for (chain, bundle, refused) in cases {
        let endpoint = serve(chain, Some(address(&fake))).await;
        let mut start = doctor().args([format!("--ecs-endpoint=https://{endpoint}"), "--output=json".to_owned()]);
        if let Some(bundle) = bundle {
            let dir = tempfile::tempdir().unwrap();
            start = start.args([trusting(&file(&dir, bundle))]);
            dirs.push(dir);
        }
        running.push((start.spawn(), refused));
    }
    for (process, refused) in running {
        let ended = process.ended().await;
        let Some((texts, reason)) = refused else {
            assert_has(&ended.stdout, &["the API accepts the requests"]);
            continue;
        };
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_has(
            &ended.stdout,
            &[texts[0], texts[1], reason, "the certificate of 127.0.0.1, issued by"],
        );
        let not = if texts == UNTRUSTED { INVALID } else { UNTRUSTED };
        assert_lacks(&ended.stdout, &[not[0], not[1], "NetworkPolicy"]);
    }
}

#[tokio::test]
async fn token_service_and_proxy_use_the_same_authorities() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let root = authority("Root", None);
    let endpoint = serve(&issued(&root, |_| {}), Some(address(&fake))).await;
    let proxy = serve(&issued(&root, |_| {}), None).await;
    let role = "--assume-role-arn=acs:ram::1000000000000001:role/diskplugin";
    let bundle = trusting(&file(&dir, &root.pem));
    let of_token_service = || {
        doctor().args([
            role,
            &format!("--ecs-endpoint={}", fake.url),
            &format!("--sts-endpoint=https://{endpoint}"),
        ])
    };
    // No proxy is used for 127.0.0.1.
    let of_proxy = || {
        let start = doctor().args([format!("--ecs-endpoint=https://127.0.0.2:{}", endpoint.port())]);
        start.env("HTTPS_PROXY", format!("https://{proxy}"))
    };
    for (process, part) in [
        (of_token_service().spawn(), "cannot assume role"),
        (of_proxy().spawn(), ""),
    ] {
        let ended = process.ended().await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let certificate = "the certificate of 127.0.0.1, issued by \"CN=Root, O=Example\"";
        assert_has(&ended.stdout, &["TLS_UNTRUSTED", certificate, part]);
    }
    for start in [of_token_service(), of_proxy()] {
        assert_has(
            &start.args([&bundle]).ended().await.stdout,
            &["the API accepts the requests"],
        );
    }
}

#[tokio::test]
async fn a_replaced_bundle_is_used_without_a_restart() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let root = authority("Root", None);
    let served = serve(&issued(&root, |_| {}), Some(address(&fake))).await;
    let bundle = trusting(&file(&dir, authority("Other", None).pem));
    let flags = [format!("--ecs-endpoint=https://{served}"), bundle];
    let controller = Running::of(|socket| {
        let start = diskplugin([
            "controller",
            "--cluster-id=c-test",
            "--region=cn-beijing",
            "--zone=cn-beijing-b",
        ]);
        start.args([endpoint(socket)]).args(flags).keys()
    });
    let controller = controller.await;
    let request = within(Duration::from_secs(8), volume("pvc-1"));
    let mut client = ControllerClient::new(controller.channel.clone());
    let refused = client.create_volume(request).await.unwrap_err();
    assert_has(refused.message(), &["TLS_UNTRUSTED", "CN=Root", "controller.caBundle"]);
    file(&dir, &root.pem);
    create(&controller.channel, "pvc-1").await.unwrap();
}

#[tokio::test]
async fn a_bundle_that_cannot_be_used_is_refused_at_the_start() {
    let (dir, root) = (tempfile::tempdir().unwrap(), authority("Root", None));
    let good = root.pem.as_str();
    let der = CertificateDer::from_pem_slice(good.as_bytes()).unwrap();
    let key = KeyPair::generate().unwrap().serialize_pem();
    let middle = good.len() / 2;
    for (content, problem) in [
        (Vec::new(), "no certificate in PEM format"),
        (b"corporate root".to_vec(), "no certificate in PEM format"),
        (der.to_vec(), "no certificate in PEM format"),
        (
            good.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            "no certificate in PEM format",
        ),
        (
            good.replace("CERTIFICATE", "PKCS7").into(),
            "no certificate in PEM format",
        ),
        (format!("{good}{key}").into(), "has a private key"),
        (key.into(), "has a private key"),
        (good[..middle].into(), "not valid PEM"),
        (
            format!("{}!{}", &good[..middle], &good[middle..]).into(),
            "not valid PEM",
        ),
    ] {
        let start = without_key().args([trusting(&file(&dir, content))]);
        assert_failed(&start.ended().await, 64, &["--ca-bundle", problem]);
    }
    let missing = without_key().args(["--ca-bundle=/nonexistent/ca.crt"]);
    assert_failed(
        &missing.ended().await,
        64,
        &["--ca-bundle", "/nonexistent/ca.crt", "No such file"],
    );
    for content in [
        good.replace('\n', "\r\n"),
        format!("\u{feff}{good}"),
        format!("# Root\n{good}\n# Root\n{good}"),
    ] {
        let start = without_key().args([trusting(&file(&dir, content))]);
        assert_failed(&start.ended().await, 1, &[]);
    }
}
