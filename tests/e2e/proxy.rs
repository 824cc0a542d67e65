//! Forwards connections between networks, instead of kube-proxy.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, copy_bidirectional, split};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;

#[derive(Debug)]
pub(crate) enum Proxy {
    Tcp(TcpListener),
    Unix(UnixListener),
}

#[derive(Debug, Clone)]
pub(crate) enum Target {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// Replaces a text in requests of some clients by another one of the same length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rewrite {
    pub(crate) applies_to: fn(IpAddr) -> bool,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

impl Proxy {
    pub(crate) async fn tcp(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await;
        Self::Tcp(listener.unwrap_or_else(|error| panic!("cannot listen on {address}: {error}")))
    }

    /// A Unix socket, which is reachable from every network namespace.
    pub(crate) fn unix(path: &Path) -> Self {
        let listener = UnixListener::bind(path);
        Self::Unix(listener.unwrap_or_else(|error| panic!("cannot listen on {}: {error}", path.display())))
    }

    /// Forwards all connections.
    pub(crate) async fn run(self, target: Target, rewrite: Option<Rewrite>) {
        let mut connections = JoinSet::new();
        loop {
            // A client that disconnects early is an error.
            let Ok((mut client, address)) = self.accept().await else {
                continue;
            };
            let target = target.clone();
            let rewrite = rewrite.filter(|rewrite| address.is_some_and(rewrite.applies_to));
            connections.spawn(async move {
                // Without a server the connection is closed.
                let Ok(mut server) = target.connect().await else {
                    return;
                };
                let _ = match rewrite {
                    Some(rewrite) => rewrite.copy(client, server).await,
                    None => copy_bidirectional(&mut client, &mut server).await.map(drop),
                };
            });
            while connections.try_join_next().is_some() {}
        }
    }

    async fn accept(&self) -> io::Result<(Box<dyn Duplex>, Option<IpAddr>)> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, client) = listener.accept().await?;
                (Box::new(stream), Some(client.ip()))
            }
            Self::Unix(listener) => (Box::new(listener.accept().await?.0), None),
        })
    }
}

impl Rewrite {
    /// Copies both ways until both have ended. A small request is one read, which contains the whole text.
    async fn copy(self, client: Box<dyn Duplex>, server: Box<dyn Duplex>) -> io::Result<()> {
        let (mut requests, mut to_client) = split(client);
        let (mut responses, mut to_server) = split(server);
        let forward = async {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let length = requests.read(&mut buffer).await?;
                if length == 0 {
                    return to_server.shutdown().await;
                }
                let request = &mut buffer[..length];
                let mut windows = request.windows(self.from.len());
                if let Some(at) = windows.position(|part| part == self.from.as_bytes()) {
                    request[at..at + self.to.len()].copy_from_slice(self.to.as_bytes());
                }
                to_server.write_all(request).await?;
            }
        };
        let back = async {
            copy(&mut responses, &mut to_client).await?;
            to_client.shutdown().await
        };
        tokio::try_join!(forward, back).map(drop)
    }
}

impl Target {
    async fn connect(&self) -> io::Result<Box<dyn Duplex>> {
        Ok(match self {
            Self::Tcp(address) => Box::new(TcpStream::connect(address).await?),
            Self::Unix(path) => Box::new(UnixStream::connect(path).await?),
        })
    }
}
