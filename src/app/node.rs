//! `diskplugin node`, the container of the DaemonSet. It needs no cloud credentials.

use std::fs;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::{http, reregistration, signal};
use crate::base::Tasks;
use crate::cli::{self, InvalidSettings, Location};
use crate::csi::node::Service;
use crate::csi::registration::Registration;
use crate::csi::server;
use crate::csi::services::Services;
use crate::http::health::{Health, NodeChecks};
use crate::http::metrics::{Metrics, NodeGauges};
use crate::http::{Site, serve};
use crate::linux::{Linux, ProcessExec, Roots, memory};
use crate::model::{Bytes, DriverName};
use crate::node::{InstanceTypeSource, NodeServices, NodeSettings};
use crate::telemetry::Telemetry;

/// The variable of the vendor's driver for `--max-volumes-per-node`.
pub(crate) const MAX_VOLUMES: &str = "MAX_VOLUMES_PERNODE";

/// Pause between two requests to a metadata service that did not respond at the start.
const METADATA_INTERVAL: Duration = Duration::from_secs(10);

/// Memory of the cgroup limit that is reserved for this process, which uses about a third of it.
pub(crate) const OWN_MEMORY: u64 = 32 << 20;

pub(crate) async fn run(args: cli::Node, telemetry: Telemetry) -> anyhow::Result<()> {
    let mut stop = pin!(signal::stop()?);
    let mut location = Location::new(&args.location);
    let max_volumes = location.checked(max_volumes(&args.node, std::env::var(MAX_VOLUMES).ok()));
    let registration = location.checked(registration(&args.node, &args.server));
    let (Some(max_volumes), Some(registration)) = (max_volumes, registration) else {
        return Err(location.into_error().into());
    };
    let port = http::port(&args.server.http).await?;
    let site = |metrics, health| Site {
        health,
        metrics,
        telemetry: telemetry.clone(),
        status: None,
        disks: None,
        // The node plugin does not use the API server.
        authorizer: Arc::default(),
    };
    let mut health = Health::new(args.server.endpoint.clone());
    let mut settings = match settings(&mut location, &args.node, max_volumes).await {
        Some(settings) => settings,
        None => {
            let problem = no_instance(&location.into_error());
            tracing::warn!("{problem}");
            health.unknown_location = Some(problem);
            let metrics = Metrics::new("node", &telemetry.metrics, Vec::new());
            tokio::select! {
                settings = wait_settings(&args, max_volumes) => settings,
                never = serve(port.as_ref(), site(metrics, health.clone())) => match never {},
                () = &mut stop => return Ok(()),
            }
        }
    };
    if let Some(dir) = args.device_dir.as_deref().filter(|dir| !dir.is_dir()) {
        tracing::warn!(
            "--device-dir {} is not a directory yet: the fake cloud creates DIR/nodes/NODE-ID with the first attached disk",
            dir.display()
        );
    }
    settings.device_dir = args.device_dir;
    let server = args.server;
    let driver = server.driver.driver_name.clone();
    protect_from_oom();
    let node = services(settings, driver, args.node.tool_memory);
    let checks = NodeChecks {
        prerequisites: node.prerequisites.clone(),
        require_shared_mounts: args.require_shared_mounts,
    };
    if args.require_shared_mounts || registration.is_some() {
        match node.prerequisites.check_mount_propagation().await {
            Ok(()) => {}
            Err(problem) if args.require_shared_mounts => return Err(InvalidSettings(vec![problem]).into()),
            Err(problem) => tracing::warn!("{problem}"),
        }
    }
    checks.log_failed().await;
    let tasks = node.tasks().clone();
    let gauges = NodeGauges(Arc::clone(&node));
    let metrics = Metrics::new("node", &telemetry.metrics, vec![Box::new(gauges)]);
    health = Health {
        node: Some(checks),
        registration: registration.clone(),
        unknown_location: None,
        ..health
    };
    let site = site(metrics, health);
    if let Some(registration) = registration.clone() {
        // Separate tasks: shutdown does not wait for it.
        Tasks::default().spawn(reregistration::run(Arc::clone(&node), registration));
    }
    let services = Services::new(server.driver.driver_name)
        .with_node(Service(node))
        .with_registration(registration);
    tokio::select! {
        served = server::serve(&server.endpoint, services, tasks, stop, server.drain_timeout) => Ok(served?),
        never = serve(port.as_ref(), site) => match never {},
    }
}

/// Excludes this process from those that the kernel terminates when the memory of the container is exhausted: with
/// `memory.oom.group`, which kubelet sets, it would otherwise end with the filesystem tool that needs the memory
/// (Documentation/admin-guide/cgroup-v2.rst). Tools have their own score.
fn protect_from_oom() {
    if let Err(error) = fs::write("/proc/self/oom_score_adj", "-1000") {
        tracing::info!(
            %error,
            "cannot set the OOM score: if filesystem tools exhaust the memory of the container, this process may be terminated too"
        );
    }
}

/// The settings of the node, with those that the flags do not set from the instance metadata service.
pub(crate) async fn settings(
    location: &mut Location<'_>,
    args: &cli::NodeArgs,
    max_volumes: Option<u32>,
) -> Option<NodeSettings> {
    let id = location.node(args.node_id.clone()).await;
    let (id, zone) = id.zip(location.zone().await)?;
    let file = args.instance_types_file.clone();
    let instance_type = match &args.instance_type {
        None if file.is_some() => location.instance_type().await,
        given => given.clone(),
    };
    Some(NodeSettings {
        id,
        zone,
        max_volumes,
        categories: args.instance_categories.clone(),
        instance_types: InstanceTypeSource { file, instance_type },
        device_dir: None,
        kubelet_dir: args.directories.kubelet_dir.clone(),
        state_dir: args.directories.state_dir.clone(),
    })
}

/// Returns when the metadata service responds. A restart of the process would not help.
async fn wait_settings(args: &cli::Node, max_volumes: Option<u32>) -> NodeSettings {
    loop {
        tokio::time::sleep(METADATA_INTERVAL).await;
        let mut location = Location::without_retries(&args.location);
        if let Some(settings) = settings(&mut location, &args.node, max_volumes).await {
            return settings;
        }
    }
}

fn no_instance(missing: &InvalidSettings) -> String {
    let seconds = METADATA_INTERVAL.as_secs();
    format!(
        "this machine is not an ECS instance, or its metadata service does not respond: {}. The node plugin is not ready and \
         requests the metadata every {seconds} s; it registers with kubelet as soon as it has them. Exclude nodes that are not \
         ECS instances (`node.excludedNodeLabels` of the chart)",
        missing.0.join(". ")
    )
}

/// The services of a node with these flags.
pub(crate) fn services(settings: NodeSettings, driver: DriverName, tool_memory: Option<Bytes>) -> Arc<NodeServices> {
    tracing::info!(node.id = %settings.id, zone = %settings.zone, "managing the volumes of this node");
    let exec = Arc::new(ProcessExec);
    let host = Arc::new(Linux::new(Arc::clone(&exec) as _, Roots::default()));
    let roots = Roots::default();
    let own = |limit: Bytes| Bytes(limit.0.saturating_sub(OWN_MEMORY));
    let memory = tool_memory.or_else(|| memory::limit(&roots.proc, &roots.sys).map(own));
    Arc::new(NodeServices::new(host, exec, settings, driver, memory))
}

/// The registration with kubelet, if `--registration-dir` is set.
pub(crate) fn registration(
    node: &cli::NodeArgs,
    server: &cli::ServerArgs,
) -> Result<Option<Registration>, InvalidSettings> {
    let Some(directory) = &node.registration_dir else {
        return Ok(None);
    };
    let csi = node.kubelet_socket.as_deref();
    let csi = csi.unwrap_or_else(|| server.endpoint.path()).to_owned();
    let registration = Registration::new(directory, server.driver.driver_name.clone(), csi);
    registration.map(Some).map_err(|problem| InvalidSettings(vec![problem]))
}

/// The limit from the flag, or else from the vendor's variable.
pub(crate) fn max_volumes(node: &cli::NodeArgs, variable: Option<String>) -> Result<Option<u32>, InvalidSettings> {
    match (
        node.max_volumes_per_node,
        variable.filter(|text| !text.trim().is_empty()),
    ) {
        (Some(most), _) => Ok(Some(most)),
        (None, None) => Ok(None),
        (None, Some(text)) => match text.trim().parse() {
            Ok(most) if most > 0 => Ok(Some(most)),
            _ => Err(InvalidSettings(vec![format!(
                "{MAX_VOLUMES} is {text:?}; allowed: a whole number, 1 or more"
            )])),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(flag: Option<u32>, variable: Option<&str>) -> Result<Option<u32>, InvalidSettings> {
        let node = cli::NodeArgs {
            node_id: None,
            max_volumes_per_node: flag,
            instance_categories: Vec::new(),
            instance_type: None,
            instance_types_file: None,
            directories: cli::NodeDirectoryArgs {
                kubelet_dir: "/nowhere".into(),
                state_dir: "/nowhere".into(),
            },
            tool_memory: None,
            registration_dir: None,
            kubelet_socket: None,
        };
        max_volumes(&node, variable.map(str::to_owned))
    }

    #[test]
    fn the_flag_takes_precedence_over_the_vendors_variable() {
        assert_eq!(limit(Some(5), Some("9")).unwrap(), Some(5));
        assert_eq!(limit(None, Some("9")).unwrap(), Some(9));
        assert_eq!(limit(None, Some("")).unwrap(), None);
    }

    #[test]
    fn an_invalid_limit_is_reported_by_name_and_value() {
        for text in ["0", "-3", "many"] {
            let refused = limit(None, Some(text)).unwrap_err().to_string();
            assert!(
                refused.contains("MAX_VOLUMES_PERNODE") && refused.contains(text),
                "{refused}"
            );
        }
    }
}
