//! Handing connections on: from one network into another, and where others have kube-proxy.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;

/// Where connections come in.
#[derive(Debug)]
pub(crate) enum Door {
    Tcp(TcpListener),
    Socket(UnixListener),
}

/// Where they go to.
#[derive(Debug, Clone)]
pub(crate) enum Room {
    Tcp(SocketAddr),
    Socket(PathBuf),
}

trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

impl Door {
    /// One at this address.
    pub(crate) async fn tcp(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await;
        Self::Tcp(listener.unwrap_or_else(|error| panic!("cannot listen on {address}: {error}")))
    }

    /// A socket, which is found by its path from every network.
    pub(crate) fn socket(path: &Path) -> Self {
        let listener = UnixListener::bind(path);
        let path = path.display();
        Self::Socket(listener.unwrap_or_else(|error| panic!("cannot listen on {path}: {error}")))
    }

    /// Hands on whatever comes in.
    pub(crate) async fn lead(self, room: Room) {
        let mut connections = JoinSet::new();
        loop {
            // One that has gone before it was let in.
            let Ok(mut from) = self.accept().await else {
                continue;
            };
            let room = room.clone();
            connections.spawn(async move {
                // Where nobody listens it ends, as it would there.
                if let Ok(mut to) = room.enter().await {
                    let _ = copy_bidirectional(&mut from, &mut to).await;
                }
            });
            while connections.try_join_next().is_some() {}
        }
    }

    async fn accept(&self) -> io::Result<Box<dyn Duplex>> {
        Ok(match self {
            Self::Tcp(listener) => Box::new(listener.accept().await?.0),
            Self::Socket(listener) => Box::new(listener.accept().await?.0),
        })
    }
}

impl Room {
    async fn enter(&self) -> io::Result<Box<dyn Duplex>> {
        Ok(match self {
            Self::Tcp(address) => Box::new(TcpStream::connect(address).await?),
            Self::Socket(path) => Box::new(UnixStream::connect(path).await?),
        })
    }
}
