//! The network of the place: a loopback device with a few addresses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::command::run;
use crate::keys::SERVICE;

/// The node's own address.
pub(crate) const NODE: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
/// Where pods find the cloud.
pub(crate) const CLOUD: SocketAddr = SocketAddr::new(IpAddr::V4(NODE), 8480);

/// Brings the device up with its addresses.
pub(crate) async fn up() {
    run("ip", &["link", "set", "lo", "up"]).await;
    for address in [NODE, SERVICE] {
        run(
            "ip",
            &["address", "add", &format!("{address}/32"), "dev", "lo"],
        )
        .await;
    }
}
