//! Handing connections on: from one network into another, and where others have kube-proxy.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, copy_bidirectional, split};
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

/// What somebody says differently behind a door: the words, and those that arrive, which are as long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rename {
    /// Whether it is for whoever has this address.
    pub(crate) of: fn(IpAddr) -> bool,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
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
        self.lead_with(room, None).await;
    }

    /// The same, with other words for some.
    pub(crate) async fn lead_with(self, room: Room, rename: Option<Rename>) {
        let mut connections = JoinSet::new();
        loop {
            // One that has gone before it was let in.
            let Ok((mut from, who)) = self.accept().await else {
                continue;
            };
            let room = room.clone();
            let rename = rename.filter(|rename| who.is_some_and(rename.of));
            connections.spawn(async move {
                // Where nobody listens it ends, as it would there.
                let Ok(mut to) = room.enter().await else {
                    return;
                };
                let _ = match rename {
                    Some(rename) => rename.copy(from, to).await,
                    None => copy_bidirectional(&mut from, &mut to).await.map(drop),
                };
            });
            while connections.try_join_next().is_some() {}
        }
    }

    async fn accept(&self) -> io::Result<(Box<dyn Duplex>, Option<IpAddr>)> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, who) = listener.accept().await?;
                (Box::new(stream), Some(who.ip()))
            }
            Self::Socket(listener) => (Box::new(listener.accept().await?.0), None),
        })
    }
}

impl Rename {
    /// Hands on both ways until both have ended. The words must be in the first piece of a request, as small ones are.
    async fn copy(self, from: Box<dyn Duplex>, to: Box<dyn Duplex>) -> io::Result<()> {
        let (mut asks, mut hears) = split(from);
        let (mut answers, mut is_asked) = split(to);
        let there = async {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let length = asks.read(&mut buffer).await?;
                if length == 0 {
                    return is_asked.shutdown().await;
                }
                let piece = &mut buffer[..length];
                let found = piece
                    .windows(self.from.len())
                    .position(|part| part == self.from.as_bytes());
                if let Some(at) = found {
                    piece[at..at + self.to.len()].copy_from_slice(self.to.as_bytes());
                }
                is_asked.write_all(piece).await?;
            }
        };
        let back = async {
            copy(&mut answers, &mut hears).await?;
            hears.shutdown().await
        };
        tokio::try_join!(there, back).map(drop)
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
