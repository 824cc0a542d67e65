//! The networks: that of the sandbox, a loopback device with additional addresses, which the first node uses; and that
//! of the second node, connected by a veth pair.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::command::run;
use crate::keys::SERVICE;

/// The address of the first node.
pub(crate) const NODE: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
/// The address of the sandbox in the network of the second node.
pub(crate) const UPLINK: Ipv4Addr = Ipv4Addr::new(10, 99, 1, 1);

/// The addresses of a node and its pods.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Network {
    pub(crate) node: Ipv4Addr,
    /// The first of 256 addresses of the pods.
    first: Ipv4Addr,
}

pub(crate) const FIRST: Network = Network {
    node: NODE,
    first: Ipv4Addr::new(10, 98, 0, 0),
};
pub(crate) const SECOND: Network = Network {
    node: Ipv4Addr::new(10, 99, 1, 2),
    first: Ipv4Addr::new(10, 98, 1, 0),
};

impl Network {
    /// The range of the pods, as in routes.
    pub(crate) fn pods(&self) -> String {
        format!("{}/24", self.first)
    }

    /// Whether a pod of the node has this address.
    pub(crate) fn has_pod(&self, address: IpAddr) -> bool {
        matches!(address, IpAddr::V4(ip) if ip.octets()[..3] == self.first.octets()[..3])
    }
}

/// The address of the fake cloud for pods.
pub(crate) const CLOUD: SocketAddr = SocketAddr::new(IpAddr::V4(NODE), 8480);

/// Configures the loopback device with its addresses.
pub(crate) async fn up() {
    run("ip", &["link", "set", "lo", "up"]).await;
    for address in [NODE, SERVICE] {
        run("ip", &["address", "add", &format!("{address}/32"), "dev", "lo"]).await;
    }
}
