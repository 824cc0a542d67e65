//! The unix socket: private, taken over from a dead process, never from a living one.

use std::fmt;
use std::fs::{File, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};

use crate::base::Deadline;

/// Where to listen: `unix:///absolute/path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    path: PathBuf,
}

/// A text that is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no endpoint: unix:///absolute/path is, with at most 107 bytes of path")]
pub struct InvalidEndpoint(String);

/// Where a socket is until it is closed to others; nobody else has this name while the directory is locked.
const BESIDE: &str = ".socket";

/// How long another start may take to put its socket in place.
const PATIENCE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(10);

/// Longest path of a unix socket (Linux, `sun_path` of unix(7)).
const LONGEST: usize = 107;

impl Endpoint {
    /// The socket's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let path = text.strip_prefix("unix://").unwrap_or(text);
        if !path.starts_with('/') || path.ends_with('/') || path.len() > LONGEST {
            return Err(InvalidEndpoint(text.to_owned()));
        }
        Ok(Self { path: path.into() })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix://{}", self.path.display())
    }
}

/// Why the socket cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Somebody answers there.
    #[error("{} is in use by a running process; stop that one first", path.display())]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// Something else is there.
    #[error("{} exists and is no socket; it is left alone, remove it or choose another path", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// A step failed.
    #[error("cannot {step} {}", path.display())]
    Io {
        /// The step.
        step: &'static str,
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// A bound socket, whose path goes when this is dropped.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    inode: u64,
}

impl Socket {
    /// Whether the path still leads to this socket.
    pub(super) fn is_in_place(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode)
    }
}

/// Binds the endpoint, readable and writable by this user only.
///
/// # Errors
/// When a living process serves it, or something that is no socket is there.
pub async fn bind(endpoint: &Endpoint) -> Result<(UnixListener, Socket), SocketError> {
    let path = &endpoint.path;
    let directory = path.parent().unwrap_or(Path::new("/"));
    make(directory, path).await?;
    // Between finding a socket stale and replacing it nobody else may do the same.
    let _alone = lock(directory, path).await?;
    clear_way(path).await?;
    // Bound beside its place, closed to others, then moved: at its own path the socket is never
    // open to everybody, and never half there.
    let beside = path.with_file_name(BESIDE);
    remove_left(&beside).await?;
    let listener = UnixListener::bind(&beside).map_err(io("bind", path))?;
    let placed = async {
        tokio::fs::set_permissions(&beside, Permissions::from_mode(0o600)).await?;
        let inode = tokio::fs::metadata(&beside).await?.ino();
        tokio::fs::rename(&beside, path).await?;
        Ok(inode)
    };
    match placed.await {
        Ok(inode) => Ok((
            listener,
            Socket {
                path: path.clone(),
                inode,
            },
        )),
        Err(source) => {
            // Best effort: the error that matters is the one above.
            let _ = tokio::fs::remove_file(&beside).await;
            Err(io("place", path)(source))
        }
    }
}

/// Makes the directory where it is not there; not in silence, because then kubelet or the sidecars may look
/// for the socket elsewhere.
async fn make(directory: &Path, path: &Path) -> Result<(), SocketError> {
    let is_there = tokio::fs::try_exists(directory).await;
    if is_there.map_err(io("look at the directory of", path))? {
        return Ok(());
    }
    let made = tokio::fs::create_dir_all(directory).await;
    made.map_err(io("create the directory of", path))?;
    tracing::warn!(
        directory = %directory.display(),
        "the socket's directory was not there, and is made: is it the one that others look in?"
    );
    Ok(())
}

/// Removes the socket that a start has left which was killed before it could move it.
async fn remove_left(beside: &Path) -> Result<(), SocketError> {
    match tokio::fs::symlink_metadata(beside).await {
        Ok(found) if found.file_type().is_socket() => tokio::fs::remove_file(beside)
            .await
            .map_err(io("remove", beside)),
        Ok(_) => Err(SocketError::NotASocket {
            path: beside.to_owned(),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io("look at", beside)(error)),
    }
}

/// Holds the directory against other starts until it is dropped; the kernel lets go of it when the
/// process ends.
async fn lock(directory: &Path, path: &Path) -> Result<File, SocketError> {
    let file = File::open(directory).map_err(io("open the directory of", path))?;
    let deadline = Deadline::after(PATIENCE);
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if !deadline.is_over() => {}
            Err(error) => return Err(io("lock the directory of", path)(error.into())),
        }
    }
}

async fn clear_way(path: &Path) -> Result<(), SocketError> {
    let metadata = match tokio::fs::symlink_metadata(path).await {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io("look at", path)(error)),
    };
    if !metadata.file_type().is_socket() {
        return Err(SocketError::NotASocket {
            path: path.to_owned(),
        });
    }
    match UnixStream::connect(path).await {
        Ok(stream) if is_left_behind(&stream) => {
            tracing::info!(path = %path.display(), "taking over the socket of a process that was killed");
            Ok(())
        }
        Ok(_) => Err(SocketError::InUse {
            path: path.to_owned(),
        }),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::ConnectionRefused | ErrorKind::NotFound
            ) =>
        {
            tracing::info!(path = %path.display(), "taking over the socket of a process that is gone");
            Ok(())
        }
        // Neither dead nor ours to judge: a full backlog, or another user's.
        Err(error) => Err(io("tell who serves", path)(error)),
    }
}

/// Whether the process that listens is dead. One that is killed while it starts a tool leaves a child
/// which has the socket, and so keeps it open, until it becomes that tool.
fn is_left_behind(stream: &UnixStream) -> bool {
    let listener = stream.peer_cred().ok().and_then(|peer| peer.pid());
    // 0 is a process of another container: nothing is known of it.
    listener.is_some_and(|pid| pid > 0 && !Path::new(&format!("/proc/{pid}")).exists())
}

fn io(step: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> SocketError {
    let path = path.to_owned();
    move |source| SocketError::Io { step, path, source }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.is_in_place()
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
        format!("unix://{}/csi.sock", directory.display())
            .parse()
            .unwrap()
    }

    #[tokio::test]
    async fn a_living_socket_is_refused_and_a_stale_one_is_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        let endpoint = endpoint(directory.path());
        let (listener, socket) = bind(&endpoint).await.unwrap();
        assert!(matches!(
            bind(&endpoint).await,
            Err(SocketError::InUse { .. })
        ));
        // The listener is this very process, which lives.
        let stream = UnixStream::connect(endpoint.path()).await.unwrap();
        assert!(!is_left_behind(&stream));
        drop((stream, listener));
        std::mem::forget(socket);
        let (_listener, socket) = bind(&endpoint).await.unwrap();
        let mode = std::fs::metadata(endpoint.path())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(socket);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn of_many_starts_on_a_stale_socket_one_serves_and_the_others_are_refused() {
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
    async fn what_a_killed_start_has_left_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let endpoint = endpoint(directory.path());
        drop(UnixListener::bind(directory.path().join(BESIDE)).unwrap());
        let (_listener, socket) = bind(&endpoint).await.unwrap();
        drop(socket);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_directory_that_is_not_there_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let endpoint = endpoint(&directory.path().join("not/there"));
        for _ in 0..2 {
            let (listener, socket) = bind(&endpoint).await.unwrap();
            assert!(socket.is_in_place());
            drop((listener, socket));
        }
    }

    #[tokio::test]
    async fn a_file_in_the_way_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let endpoint = endpoint(directory.path());
        std::fs::write(endpoint.path(), "data").unwrap();
        assert!(matches!(
            bind(&endpoint).await,
            Err(SocketError::NotASocket { .. })
        ));
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
