//! Listens on a TCP address.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt::Ipv6V6Only};
use tokio::net::{TcpListener, TcpSocket};

/// Connections that the kernel queues, as tokio's default.
const BACKLOG: u32 = 1024;

/// Listens on the address. `[::]` is every address, as in Go and thus the sidecars: of IPv4 too, whatever
/// `net.ipv6.bindv6only` is, and of IPv4 only on a machine without IPv6.
pub async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    if address.is_ipv4() || !address.ip().is_unspecified() {
        return TcpListener::bind(address).await;
    }
    match listen_on_both(address) {
        Err(error) if is_without_ipv6(&error) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await,
        listener => listener,
    }
}

fn listen_on_both(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v6()?;
    setsockopt(&socket, Ipv6V6Only, &false)?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn is_without_ipv6(error: &io::Error) -> bool {
    let number = error.raw_os_error().map(Errno::from_raw);
    matches!(number, Some(Errno::EAFNOSUPPORT | Errno::EADDRNOTAVAIL))
}
