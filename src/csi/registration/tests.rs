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

async fn client(registration: &Registration) -> Option<RegistrationClient<tonic::transport::Channel>> {
    let endpoint = registration.0.socket.to_string();
    let endpoint = tonic::transport::Endpoint::try_from(endpoint).unwrap();
    Some(RegistrationClient::new(endpoint.connect().await.ok()?))
}

fn status(registered: bool) -> RegistrationStatus {
    RegistrationStatus {
        plugin_registered: registered,
        error: if registered { "" } else { "no such node" }.to_owned(),
    }
}

/// Serves the registration until the test ends.
async fn serve(registration: &Registration) -> Tasks {
    let listening = registration.listen().await.unwrap();
    let tasks = Tasks::default();
    let registration = registration.clone();
    tasks.spawn(async move { match registration.serve(listening).await {} });
    tasks
}

#[tokio::test]
async fn the_bytes_that_kubelet_sends_get_a_response() {
    let directory = tempfile::tempdir().unwrap();
    let registration = registration(directory.path());
    let _tasks = serve(&registration).await;
    let mut stream = UnixStream::connect(registration.0.socket.path()).await.unwrap();
    stream.write_all(&bytes(FROM_KUBELET)).await.unwrap();
    let mut response = Vec::new();
    // The name is a protobuf string, so it is in the response verbatim.
    while !response
        .windows(DriverName::default().as_str().len())
        .any(|part| part == b"diskplugin.csi.example")
    {
        let read = tokio::time::timeout(Duration::from_secs(30), stream.read_buf(&mut response));
        let read = read.await.expect("there is a response").unwrap();
        assert_ne!(read, 0, "the call was rejected: {response:x?}");
    }
}

#[tokio::test]
async fn kubelet_gets_type_name_socket_and_version_and_reports_the_state() {
    let directory = tempfile::tempdir().unwrap();
    let registration = registration(directory.path());
    let _tasks = serve(&registration).await;
    let mut kubelet = client(&registration).await.unwrap();
    let info = kubelet.get_info(InfoRequest {}).await.unwrap().into_inner();
    assert_eq!(
        (info.r#type.as_str(), info.name.as_str(), info.endpoint.as_str()),
        ("CSIPlugin", "diskplugin.csi.example", "/csi/csi.sock")
    );
    assert_eq!(info.supported_versions, ["1.0.0"]);
    assert_eq!(registration.state(), RegistrationState::Pending);
    kubelet.notify_registration_status(status(true)).await.unwrap();
    assert_eq!(registration.state(), RegistrationState::Registered);
}

#[tokio::test]
async fn a_rejected_registration_is_retried_with_a_new_socket() {
    let directory = tempfile::tempdir().unwrap();
    let registration = registration(directory.path());
    let _tasks = serve(&registration).await;
    let mut kubelet = client(&registration).await.unwrap();
    kubelet.notify_registration_status(status(false)).await.unwrap();
    assert_eq!(
        registration.state(),
        RegistrationState::Rejected("no such node".to_owned())
    );
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    // The old socket accepts no further calls.
    while kubelet.get_info(InfoRequest {}).await.is_ok() {
        ticks.tick().await;
    }
    let mut again = loop {
        ticks.tick().await;
        if let Some(client) = client(&registration).await {
            break client;
        }
    };
    again.notify_registration_status(status(true)).await.unwrap();
    assert_eq!(registration.state(), RegistrationState::Registered);
}

#[tokio::test(start_paused = true)]
async fn a_removed_socket_is_created_again() {
    let directory = tempfile::tempdir().unwrap();
    let registration = registration(directory.path());
    let _tasks = serve(&registration).await;
    registration.set(RegistrationState::Registered);
    let path = registration.0.socket.path();
    fs::remove_file(path).unwrap();
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    for _ in 0..60 {
        ticks.tick().await;
    }
    assert!(path.exists());
    assert_eq!(registration.state(), RegistrationState::Pending);
}

/// Seconds until there is a new socket.
async fn seconds_until_new(registration: &Registration, before: u64) -> u64 {
    let begun = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    loop {
        ticks.tick().await;
        if inode(registration).is_some_and(|now| now != before) {
            return begun.elapsed().as_secs();
        }
        assert!(begun.elapsed() < Duration::from_mins(10), "no new socket");
    }
}

/// Returns when all tasks are idle: the paused clock advances only then.
async fn settled() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Distinguishes sockets at the same path.
fn inode(registration: &Registration) -> Option<u64> {
    let found = fs::metadata(registration.0.socket.path()).ok()?;
    let changed = u64::try_from(found.ctime_nsec()).unwrap();
    Some(found.ino() ^ (changed << 16))
}

#[tokio::test(start_paused = true)]
async fn a_restart_is_fast_however_many_rejections_came_before() {
    let directory = tempfile::tempdir().unwrap();
    let registration = registration(directory.path());
    let _tasks = serve(&registration).await;
    let mut last = 0;
    for _ in 0..5 {
        settled().await;
        let before = inode(&registration).unwrap();
        registration.set(RegistrationState::Rejected("no".to_owned()));
        registration.0.rejected.notify_one();
        last = seconds_until_new(&registration, before).await;
    }
    assert!(last >= 16, "{last}");
    for _ in 0..3 {
        settled().await;
        registration.set(RegistrationState::Registered);
        let before = inode(&registration).unwrap();
        registration.restart();
        registration.wait_registered(false).await;
        assert_eq!(registration.state(), RegistrationState::Pending);
        let seconds = seconds_until_new(&registration, before).await;
        assert!(seconds <= 2, "{seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn notifications_about_an_earlier_socket_do_not_end_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let registration = registration(directory.path());
    // Both simultaneously: one ends the socket, the other is left over.
    registration.restart();
    registration.0.rejected.notify_one();
    let _tasks = serve(&registration).await;
    let before = inode(&registration).unwrap();
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    for _ in 0..30 {
        ticks.tick().await;
    }
    assert_eq!(inode(&registration), Some(before));
}

#[test]
fn the_end_of_a_socket_resets_the_state_except_a_rejection() {
    let directory = tempfile::tempdir().unwrap();
    let registration = registration(directory.path());
    for (state, rejected, then) in [
        (RegistrationState::Registered, false, RegistrationState::Pending),
        (RegistrationState::Registered, true, RegistrationState::Pending),
        (
            RegistrationState::Rejected("no".to_owned()),
            false,
            RegistrationState::Pending,
        ),
        (
            RegistrationState::Rejected("no".to_owned()),
            true,
            RegistrationState::Rejected("no".to_owned()),
        ),
    ] {
        registration.set(state.clone());
        assert_eq!(registration.reset(rejected), state);
        assert_eq!(registration.state(), then);
    }
}

#[test]
fn an_invalid_directory_is_rejected_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let deep = directory.path().join("x".repeat(90));
    fs::create_dir(&deep).unwrap();
    for (path, reason) in [
        (directory.path().join("none"), "does not exist"),
        (file.clone(), "is not a directory"),
        (file.join("below"), "cannot access"),
        (deep, "too long"),
    ] {
        let error = Registration::new(&path, DriverName::default(), "/csi/csi.sock".into());
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains(reason) && error.contains("--registration-dir"),
            "{error}"
        );
    }
}
