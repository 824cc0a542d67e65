//! Topology segments: the standard zone key and nothing of our own.

/// The well-known label of Kubernetes nodes that holds the zone.
pub const ZONE_KEY: &str = "topology.kubernetes.io/zone";
