//! The networks: that of the place, a loopback device with a few addresses, in which the first node is; and that of a
//! second node, which a cable leads to.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::command::run;
use crate::keys::SERVICE;

/// The node's own address.
pub(crate) const NODE: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
/// The place's end of the cable.
pub(crate) const UPLINK: Ipv4Addr = Ipv4Addr::new(10, 99, 1, 1);

/// Where a node and its pods are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Network {
    pub(crate) node: Ipv4Addr,
    /// The first address of the pods, of 256.
    first: Ipv4Addr,
}

/// That of the first node.
pub(crate) const FIRST: Network = Network {
    node: NODE,
    first: Ipv4Addr::new(10, 98, 0, 0),
};
/// That of the second one.
pub(crate) const SECOND: Network = Network {
    node: Ipv4Addr::new(10, 99, 1, 2),
    first: Ipv4Addr::new(10, 98, 1, 0),
};

impl Network {
    /// The pods' part, as routes have it.
    pub(crate) fn pods(&self) -> String {
        format!("{}/24", self.first)
    }

    /// Whether a pod of the node has this address.
    pub(crate) fn has_pod(&self, address: IpAddr) -> bool {
        matches!(address, IpAddr::V4(ip) if ip.octets()[..3] == self.first.octets()[..3])
    }
}

/// Where pods find the cloud.
pub(crate) const CLOUD: SocketAddr = SocketAddr::new(IpAddr::V4(NODE), 8480);

/// Brings the device up with its addresses.
pub(crate) async fn up() {
    run("ip", &["link", "set", "lo", "up"]).await;
    for address in [NODE, SERVICE] {
        run("ip", &["address", "add", &format!("{address}/32"), "dev", "lo"]).await;
    }
}
