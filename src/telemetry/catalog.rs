//! All metrics: names, units, labels and meanings. `docs/reference/metrics.md` is generated from this table.

use prometheus_client::metrics::MetricType::{self, Counter, Gauge, Histogram, Info};
use prometheus_client::registry::Unit::{self, Bytes, Seconds};
use prometheus_client::registry::{Metric, Registry};

/// The description of a metric.
#[derive(Debug)]
pub struct Description {
    /// Without the prefix `diskplugin_`, unit and suffix of the type.
    name: &'static str,
    pub(crate) kind: MetricType,
    pub(crate) unit: Option<Unit>,
    pub labels: &'static [&'static str],
    pub help: &'static str,
    /// The roles that have it. `all-in-one` has all.
    pub roles: &'static str,
}

/// Prefix of all metrics.
pub(crate) const PREFIX: &str = "diskplugin";

const BOTH: &str = "controller, node";
const CONTROLLER: &str = "controller";
const NODE: &str = "node";

const fn metric(
    name: &'static str,
    kind: MetricType,
    unit: Option<Unit>,
    labels: &'static [&'static str],
    roles: &'static str,
    help: &'static str,
) -> Description {
    Description {
        name,
        kind,
        unit,
        labels,
        help,
        roles,
    }
}

/// All metrics, in the order of the page.
#[rustfmt::skip]
pub const METRICS: &[Description] = &[
    metric("build", Info, None, &["version", "role"], BOTH, "Version and role of the process"),
    metric("leader", Gauge, None, &[], CONTROLLER, "1 if this replica is the leader, 0 if it is a standby; missing without leader election"),
    metric("rpc_duration", Histogram, Some(Seconds), &["method", "code"], BOTH, "Duration of CSI calls by gRPC code; the exemplar has the trace ID"),
    metric("rpcs_in_flight", Gauge, None, &["method"], BOTH, "CSI calls that are running"),
    metric("rpc_phase_duration", Histogram, Some(Seconds), &["method", "phase"], BOTH, "Duration of the phases of CSI calls; `background` is work that several calls share"),
    metric("cloud_call_duration", Histogram, Some(Seconds), &["action", "code"], CONTROLLER, "Duration of attempts of cloud calls by error code, or OK; the exemplar has the RequestId"),
    metric("cloud_calls_throttled", Counter, None, &["action"], CONTROLLER, "Attempts that the cloud throttled"),
    metric("cloud_calls_waiting", Gauge, None, &["action"], CONTROLLER, "Calls that wait for the rate limit"),
    metric("cloud_calls_in_flight", Gauge, None, &["action"], CONTROLLER, "Calls without a response yet; `account` is the limit of all actions"),
    metric("cloud_quota_calls_per_second", Gauge, None, &["action"], CONTROLLER, "Quota learned from throttling errors; missing while no call was throttled"),
    metric("cloud_configured_calls_per_second", Gauge, None, &["action"], CONTROLLER, "Limit of --rate-limits; missing without one"),
    metric("cloud_throttled_remaining", Gauge, Some(Seconds), &["action"], CONTROLLER, "Time until the next call after a throttling error; 0 otherwise"),
    metric("cloud_outage", Gauge, Some(Seconds), &[], CONTROLLER, "Time between the first and the last request without a response from the cloud API since its last response; 0 if none failed in the last 10 minutes"),
    metric("credentials_remaining", Gauge, Some(Seconds), &[], CONTROLLER, "Remaining lifetime of temporary credentials; 0 without credentials, missing for permanent ones"),
    metric("poll_batch_size", Histogram, None, &["action"], CONTROLLER, "Resources per poll of the shared poller"),
    metric("attach_queue_waiting", Gauge, None, &["operation"], CONTROLLER, "Requests that wait until their instance accepts them, of all instances"),
    metric("attach_queue_running", Gauge, None, &["operation"], CONTROLLER, "Operations that the cloud is processing"),
    metric("attach_queue_longest", Gauge, None, &["operation"], CONTROLLER, "Requests that wait for the instance with the longest queue"),
    metric("stockout", Gauge, None, &["zone", "category"], CONTROLLER, "1 if the cloud recently reported no stock; the category `any` is the whole zone, and the zone `region` has the regional categories"),
    metric("volumes", Gauge, None, &["state", "category"], CONTROLLER, "Disks of the cluster, as of the last listing"),
    metric("volumes_listed_timestamp", Gauge, Some(Seconds), &[], CONTROLLER, "Unix time of the last complete listing of the disks"),
    metric("volumes_capacity", Gauge, Some(Bytes), &["state", "category"], CONTROLLER, "Capacity of the disks of the cluster, as of the last listing"),
    metric("orphans", Gauge, None, &["class", "kind"], CONTROLLER, "Disks and snapshots that Kubernetes does not use, by the classes of diskplugin orphans; missing without --metrics-orphans-interval"),
    metric("orphans_capacity", Gauge, Some(Bytes), &["class", "kind"], CONTROLLER, "Size of these disks and snapshots"),
    metric("node_attachments_used", Gauge, None, &["node_id"], CONTROLLER, "Disks of the cluster that are attached to the instance, as of the last listing"),
    metric("node_volume_limit", Gauge, None, &["source"], NODE, "Volumes that the node accepts, as reported to the scheduler; the source is `setting` or `instance_type`"),
    metric("node_volumes_staged", Gauge, None, &[], NODE, "Volumes that are staged on the node"),
    metric("node_volumes_free", Gauge, None, &[], NODE, "Volumes that the node accepts in addition to the staged ones"),
    metric("volume_capacity", Gauge, Some(Bytes), &["disk_id", "kind"], NODE, "Bytes of the volume: `total`, `used` or `available`"),
    metric("volume_inodes", Gauge, None, &["disk_id", "kind"], NODE, "Inodes of the filesystem: `total`, `used` or `available`"),
    metric("volume_unhealthy", Gauge, None, &["disk_id", "reason"], NODE, "1 for each health issue of a staged volume"),
    metric("volume_io_operations", Counter, None, &["disk_id", "direction"], NODE, "Completed reads and writes of the device"),
    metric("volume_io_transferred", Counter, Some(Bytes), &["disk_id", "direction"], NODE, "Bytes read from and written to the device"),
    metric("volume_io_time", Counter, Some(Seconds), &["disk_id", "direction"], NODE, "Sum of the durations of reads and writes"),
    metric("volume_io_busy", Counter, Some(Seconds), &["disk_id"], NODE, "Time during which the device had I/O in flight"),
    metric("volume_io_in_flight", Gauge, None, &["disk_id"], NODE, "Reads and writes that the device has not completed"),
];

impl Description {
    /// The name of the metric family, with prefix and unit.
    pub fn full_name(&self) -> String {
        let unit = self.unit.as_ref().map(|unit| format!("_{}", unit.as_str()));
        format!("{}_{}{}", PREFIX, self.name, unit.unwrap_or_default())
    }

    /// The name of the type in OpenMetrics.
    pub fn kind(&self) -> &str {
        self.kind.as_str()
    }
}

/// The description of the metric of this name.
///
/// # Panics
/// If the table has none.
pub(crate) fn description(name: &str) -> &'static Description {
    let found = METRICS.iter().find(|one| one.name == name);
    found.unwrap_or_else(|| panic!("{name} is not in the table of metrics"))
}

/// Registers a metric with the unit and meaning of the table.
pub(crate) fn register(registry: &mut Registry, name: &str, metric: impl Metric) {
    let Description { help, unit, .. } = description(name);
    match unit {
        Some(unit) => registry.register_with_unit(name, *help, unit.clone(), metric),
        None => registry.register(name, *help, metric),
    }
}
