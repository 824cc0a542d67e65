use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::*;
use crate::base::Tasks;
use crate::csi::authority::tests::{FROM_KUBELET, bytes};
use crate::csi::proto::pluginregistration::registration_client::RegistrationClient;

fn registration(directory: &Path) -> Registration {
    Registration::new(directory, DriverName::default(), "/csi/csi.sock".into()).unwrap()
}

async fn client(
    registration: &Registration,
) -> Option<RegistrationClient<tonic::transport::Channel>> {
    let endpoint = registration.0.socket.to_string();
    let endpoint = tonic::transport::Endpoint::try_from(endpoint).unwrap();
    Some(RegistrationClient::new(endpoint.connect().await.ok()?))
}

fn word(registered: bool) -> RegistrationStatus {
    RegistrationStatus {
        plugin_registered: registered,
        error: if registered { "" } else { "no such node" }.to_owned(),
    }
}

/// Serves it until the test ends.
async fn serve(registration: &Registration) -> Tasks {
    let offered = registration.offer().await.unwrap();
    let tasks = Tasks::default();
    tasks.start(async move { match offered.keep().await {} });
    tasks
}

#[tokio::test]
async fn the_bytes_that_kubelet_sends_are_answered() {
    let directory = tempfile::tempdir().unwrap();
    let registration = registration(directory.path());
    let _tasks = serve(&registration).await;
    let mut stream = UnixStream::connect(registration.0.socket.path())
        .await
        .unwrap();
    stream.write_all(&bytes(FROM_KUBELET)).await.unwrap();
    let mut answer = Vec::new();
    // The name stands in the answer as it is: a protobuf text.
    while !answer
        .windows(DriverName::default().as_str().len())
        .any(|part| part == b"diskplugin.csi.example")
    {
        let read = tokio::time::timeout(Duration::from_secs(30), stream.read_buf(&mut answer));
        let read = read.await.expect("it answers").unwrap();
        assert_ne!(read, 0, "the call was refused: {answer:x?}");
    }
}

#[tokio::test]
async fn kubelet_is_told_kind_name_socket_and_version_and_its_word_counts() {
    let directory = tempfile::tempdir().unwrap();
    let registration = registration(directory.path());
    let _tasks = serve(&registration).await;
    let mut kubelet = client(&registration).await.unwrap();
    let info = kubelet.get_info(InfoRequest {}).await.unwrap().into_inner();
    assert_eq!(
        (
            info.r#type.as_str(),
            info.name.as_str(),
            info.endpoint.as_str()
        ),
        ("CSIPlugin", "diskplugin.csi.example", "/csi/csi.sock")
    );
    assert_eq!(info.supported_versions, ["1.0.0"]);
    assert_eq!(registration.stage(), Stage::Offered);
    kubelet
        .notify_registration_status(word(true))
        .await
        .unwrap();
    assert_eq!(registration.stage(), Stage::Registered);
}

#[tokio::test]
async fn what_is_refused_is_answered_and_then_offered_by_a_new_socket() {
    let directory = tempfile::tempdir().unwrap();
    let registration = registration(directory.path());
    let _tasks = serve(&registration).await;
    let mut kubelet = client(&registration).await.unwrap();
    kubelet
        .notify_registration_status(word(false))
        .await
        .unwrap();
    assert_eq!(
        registration.stage(),
        Stage::Refused("no such node".to_owned())
    );
    let mut look = tokio::time::interval(Duration::from_millis(10));
    // The old one goes, and takes no more calls.
    while kubelet.get_info(InfoRequest {}).await.is_ok() {
        look.tick().await;
    }
    let mut again = loop {
        look.tick().await;
        if let Some(client) = client(&registration).await {
            break client;
        }
    };
    again.notify_registration_status(word(true)).await.unwrap();
    assert_eq!(registration.stage(), Stage::Registered);
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_somebody_removes_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    let registration = registration(directory.path());
    let _tasks = serve(&registration).await;
    registration.set(Stage::Registered);
    let path = registration.0.socket.path();
    fs::remove_file(path).unwrap();
    let mut look = tokio::time::interval(Duration::from_secs(1));
    for _ in 0..60 {
        look.tick().await;
    }
    assert!(path.exists());
    assert_eq!(registration.stage(), Stage::Offered);
}

/// Seconds until the socket is another one than this.
async fn anew(registration: &Registration, before: u64) -> u64 {
    let begun = Instant::now();
    let mut look = tokio::time::interval(Duration::from_millis(100));
    loop {
        look.tick().await;
        if inode(registration).is_some_and(|now| now != before) {
            return begun.elapsed().as_secs();
        }
        assert!(begun.elapsed() < Duration::from_mins(10), "it never comes");
    }
}

/// Returns when every task waits: the paused clock goes on only then.
async fn settled() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// What tells one socket from the next, where there is one.
fn inode(registration: &Registration) -> Option<u64> {
    let found = fs::metadata(registration.0.socket.path()).ok()?;
    let changed = u64::try_from(found.ctime_nsec()).unwrap();
    Some(found.ino() ^ (changed << 16))
}

#[tokio::test(start_paused = true)]
async fn a_renewal_is_offered_soon_however_often_it_was_refused_before() {
    let directory = tempfile::tempdir().unwrap();
    let registration = registration(directory.path());
    let _tasks = serve(&registration).await;
    let mut last = 0;
    for _ in 0..5 {
        settled().await;
        let before = inode(&registration).unwrap();
        registration.set(Stage::Refused("no".to_owned()));
        registration.0.refused.notify_one();
        last = anew(&registration, before).await;
    }
    assert!(last >= 16, "{last}");
    for _ in 0..3 {
        settled().await;
        registration.set(Stage::Registered);
        let before = inode(&registration).unwrap();
        registration.renew();
        registration.until(false).await;
        assert_eq!(registration.stage(), Stage::Offered);
        let took = anew(&registration, before).await;
        assert!(took <= 2, "{took}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_said_of_an_earlier_offer_ends_no_later_one() {
    let directory = tempfile::tempdir().unwrap();
    let registration = registration(directory.path());
    // Twice at once: the one ends the offer, the other is left.
    registration.renew();
    registration.0.refused.notify_one();
    let _tasks = serve(&registration).await;
    let before = inode(&registration).unwrap();
    let mut look = tokio::time::interval(Duration::from_secs(1));
    for _ in 0..30 {
        look.tick().await;
    }
    assert_eq!(inode(&registration), Some(before));
}

#[test]
fn whatever_ends_an_offer_what_was_said_of_it_counts_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let registration = registration(directory.path());
    for (stage, refused, then) in [
        (Stage::Registered, false, Stage::Offered),
        (Stage::Registered, true, Stage::Offered),
        (Stage::Refused("no".to_owned()), false, Stage::Offered),
        (
            Stage::Refused("no".to_owned()),
            true,
            Stage::Refused("no".to_owned()),
        ),
    ] {
        registration.set(stage.clone());
        assert_eq!(registration.end(refused), stage);
        assert_eq!(registration.stage(), then);
    }
}

#[test]
fn a_wrong_directory_is_told_with_what_it_has_to_be() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let deep = directory.path().join("x".repeat(90));
    fs::create_dir(&deep).unwrap();
    for (path, told) in [
        (directory.path().join("none"), "does not exist"),
        (file.clone(), "is no directory"),
        (file.join("below"), "cannot be looked at"),
        (deep, "too long"),
    ] {
        let refused = Registration::new(&path, DriverName::default(), "/csi/csi.sock".into());
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains(told) && refused.contains("--registration-dir"),
            "{refused}"
        );
    }
}
