//! Listens on a TCP address.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use nix::errno::Errno::{EADDRNOTAVAIL, EAFNOSUPPORT};
use nix::sys::socket::{setsockopt, sockopt::Ipv6V6Only};
use tokio::net::{TcpListener, TcpSocket};

use super::error::errno;

/// Listens on the address. `[::]` is every address, as in Go and thus the sidecars: of IPv4 too, whatever
/// `net.ipv6.bindv6only` is, and of IPv4 only on a machine without IPv6.
pub async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    if address.is_ipv4() || !address.ip().is_unspecified() {
        return TcpListener::bind(address).await;
    }
    let listen_on_both = || {
        let socket = TcpSocket::new_v6()?;
        setsockopt(&socket, Ipv6V6Only, &false)?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        // The backlog of `TcpListener::bind`.
        socket.listen(1024)
    };
    match listen_on_both() {
        Err(error) if matches!(errno(&error), Some(EAFNOSUPPORT | EADDRNOTAVAIL)) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        listener => listener,
    }
}
