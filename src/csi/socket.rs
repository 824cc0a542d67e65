//! The unix socket: accessible only to its owner, and taken over only from a dead process.

use std::fmt;
use std::fs::{File, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use crate::base::Deadline;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(PathBuf);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an endpoint; allowed: unix:///absolute/path, with a path of at most 107 bytes")]
pub struct InvalidEndpoint(String);

/// Name of the socket until its permissions are set. The lock of the directory protects it.
const TEMPORARY_NAME: &str = ".socket";

/// Timeout for the lock of the directory, which another starting process may hold.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// How long the owner of a socket that may be dead has to respond.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The start of each HTTP/2 connection: preface and empty SETTINGS (RFC 9113, 3.4). The server sends its own SETTINGS.
const HTTP2_START: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

const MAX_PATH: usize = 107;

impl Endpoint {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let path = text.strip_prefix("unix://").unwrap_or(text);
        if !path.starts_with('/') || path.ends_with('/') || path.len() > MAX_PATH {
            return Err(InvalidEndpoint(text.to_owned()));
        }
        Ok(Self(path.into()))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix://{}", self.0.display())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("{} is in use by a running process; stop that process first", path.display())]
    InUse { path: PathBuf },
    #[error("{} exists and is not a socket; remove it or choose another path", path.display())]
    NotASocket { path: PathBuf },
    #[error("cannot {step} {}", path.display())]
    Io {
        step: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    inode: u64,
}

impl Socket {
    pub(super) fn exists(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode)
    }
}

/// Binds the endpoint, readable and writable only by this user.
pub async fn bind(endpoint: &Endpoint) -> Result<(UnixListener, Socket), SocketError> {
    let path = endpoint.path();
    create_directory(path).await?;
    // Only one process at a time may replace a stale socket.
    let _lock = lock_directory(path).await?;
    check_stale(path).await?;
    // Bound under a temporary name, restricted and then renamed: under its final path the socket always has its final
    // permissions.
    let temporary = path.with_file_name(TEMPORARY_NAME);
    if is_socket(&temporary).await? {
        // The leftover socket of a process that was killed during startup.
        let removed = tokio::fs::remove_file(&temporary).await;
        removed.map_err(io("remove", &temporary))?;
    }
    let listener = UnixListener::bind(&temporary).map_err(io("bind", path))?;
    let placed = async {
        tokio::fs::set_permissions(&temporary, Permissions::from_mode(0o600)).await?;
        let inode = tokio::fs::metadata(&temporary).await?.ino();
        tokio::fs::rename(&temporary, path).await?;
        Ok(inode)
    };
    match placed.await {
        Ok(inode) => {
            let path = path.to_owned();
            Ok((listener, Socket { path, inode }))
        }
        Err(source) => {
            // Best effort: `source` is the error to return.
            let _ = tokio::fs::remove_file(&temporary).await;
            Err(io("place", path)(source))
        }
    }
}

/// Removes the socket of a process that was killed: a standby has none.
pub async fn remove_stale(endpoint: &Endpoint) -> Result<(), SocketError> {
    let path = endpoint.path();
    let exists = tokio::fs::try_exists(path).await.map_err(io("check", path))?;
    if !exists {
        return Ok(());
    }
    let _lock = lock_directory(path).await?;
    check_stale(path).await?;
    match tokio::fs::remove_file(path).await {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io("remove", path)(error)),
        _ => Ok(()),
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Creates the directory of the socket if it is missing, with a warning: kubelet or the sidecars may use another one.
async fn create_directory(path: &Path) -> Result<(), SocketError> {
    let directory = directory_of(path);
    let exists = tokio::fs::try_exists(directory).await;
    if exists.map_err(io("check the directory of", path))? {
        return Ok(());
    }
    let created = tokio::fs::create_dir_all(directory).await;
    created.map_err(io("create the directory of", path))?;
    tracing::warn!(
        directory = %directory.display(),
        "created the missing directory of the socket; check that kubelet and the sidecars use the same directory"
    );
    Ok(())
}

/// Whether a socket is at this path. Another file there is an error.
async fn is_socket(path: &Path) -> Result<bool, SocketError> {
    match tokio::fs::symlink_metadata(path).await {
        Ok(found) if found.file_type().is_socket() => Ok(true),
        Ok(_) => Err(SocketError::NotASocket { path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io("check", path)(error)),
    }
}

/// Locks the directory against other starting processes. The kernel releases the lock when the process ends.
async fn lock_directory(path: &Path) -> Result<File, SocketError> {
    let file = File::open(directory_of(path)).map_err(io("open the directory of", path))?;
    let deadline = Deadline::after(LOCK_TIMEOUT);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if !deadline.has_passed() => {}
            Err(error) => return Err(io("lock the directory of", path)(error.into())),
        }
        tokio::time::sleep(LOCK_RETRY_INTERVAL).await;
    }
}

/// Fails unless the path is free or the socket of a dead process.
async fn check_stale(path: &Path) -> Result<(), SocketError> {
    if !is_socket(path).await? {
        return Ok(());
    }
    match UnixStream::connect(path).await {
        Ok(stream) => {
            if !is_orphaned(stream).await {
                return Err(SocketError::InUse { path: path.to_owned() });
            }
            tracing::info!(path = %path.display(), "taking over the socket of a process that was killed");
            Ok(())
        }
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => {
            tracing::info!(path = %path.display(), "taking over the socket of a process that has ended");
            Ok(())
        }
        // Unclear: a full backlog, or the socket of another user.
        Err(error) => Err(io("connect to", path)(error)),
    }
}

/// Whether the listening process is dead. If it was killed between fork and exec of a tool, its child keeps the socket
/// open until exec; if it was killed during a system call on a dead device, it keeps it open itself.
async fn is_orphaned(stream: UnixStream) -> bool {
    match stream.peer_cred().ok().and_then(|peer| peer.pid()) {
        Some(pid) if pid > 0 => !Path::new(&format!("/proc/{pid}")).exists(),
        // A process in another PID namespace, such as that of an earlier pod.
        _ => !responds(stream).await,
    }
}

async fn responds(mut stream: UnixStream) -> bool {
    let response = async {
        stream.write_all(HTTP2_START).await?;
        stream.read_u8().await
    };
    let deadline = Deadline::after(RESPONSE_TIMEOUT);
    matches!(deadline.bound(response).await, Ok(Ok(_)))
}

fn io(step: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> SocketError {
    let path = path.to_owned();
    move |source| SocketError::Io { step, path, source }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.exists()
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the socket");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(directory: &Path) -> Endpoint {
        format!("unix://{}/csi.sock", directory.display()).parse().unwrap()
    }

    #[tokio::test]
    async fn a_socket_in_use_is_an_error_and_a_stale_one_is_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        let endpoint = endpoint(directory.path());
        let (listener, socket) = bind(&endpoint).await.unwrap();
        assert!(matches!(bind(&endpoint).await, Err(SocketError::InUse { .. })));
        drop(listener);
        std::mem::forget(socket);
        let (_listener, socket) = bind(&endpoint).await.unwrap();
        let mode = std::fs::metadata(endpoint.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(socket);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn only_one_of_many_processes_takes_over_a_stale_socket() {
        let directory = tempfile::tempdir().unwrap();
        let endpoint = endpoint(directory.path());
        for _ in 0..20 {
            let (listener, socket) = bind(&endpoint).await.unwrap();
            drop(listener);
            std::mem::forget(socket);
            let mut starts = tokio::task::JoinSet::new();
            for _ in 0..8 {
                let endpoint = endpoint.clone();
                starts.spawn(async move { bind(&endpoint).await.ok() });
            }
            let bound: Vec<_> = starts.join_all().await.into_iter().flatten().collect();
            assert_eq!(bound.len(), 1);
        }
    }

    #[tokio::test]
    async fn a_leftover_temporary_socket_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let endpoint = endpoint(directory.path());
        drop(UnixListener::bind(directory.path().join(TEMPORARY_NAME)).unwrap());
        let (_listener, socket) = bind(&endpoint).await.unwrap();
        drop(socket);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_missing_directory_is_created() {
        let directory = tempfile::tempdir().unwrap();
        let endpoint = endpoint(&directory.path().join("not/there"));
        for _ in 0..2 {
            let (listener, socket) = bind(&endpoint).await.unwrap();
            assert!(socket.exists());
            drop((listener, socket));
        }
    }

    #[tokio::test]
    async fn a_regular_file_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let endpoint = endpoint(directory.path());
        std::fs::write(endpoint.path(), "data").unwrap();
        assert!(matches!(bind(&endpoint).await, Err(SocketError::NotASocket { .. })));
        assert_eq!(std::fs::read_to_string(endpoint.path()).unwrap(), "data");
    }

    #[test]
    fn an_endpoint_is_an_absolute_path() {
        assert!("unix:///csi/csi.sock".parse::<Endpoint>().is_ok());
        for text in ["tcp://1.2.3.4:5", "unix://csi.sock", "", "unix:///csi/"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }
}
