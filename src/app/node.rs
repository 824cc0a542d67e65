//! `diskplugin node`: the DaemonSet's container. It needs no cloud credentials.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use super::health::Health;
use super::place::Whereabouts;
use super::{WrongSettings, http, renewal, signal, tools};
use crate::base::Tasks;
use crate::base::chain::chain;
use crate::cli;
use crate::csi::node::Service;
use crate::csi::registration::Registration;
use crate::csi::server::{self, Services};
use crate::host::{Linux, Processes, Roots, memory};
use crate::model::{Bytes, DriverName};
use crate::node::{Node, Settings};

/// The vendor's variable for the same thing, which charts in use today set.
pub(crate) const MAX_VOLUMES: &str = "MAX_VOLUMES_PERNODE";

/// What is left to the node itself of its control group's memory; it takes a good third of it.
const OWN_MEMORY: u64 = 32 << 20;

pub(crate) async fn run(args: cli::Node) -> anyhow::Result<()> {
    let stop = signal::stop()?;
    let mut where_is = Whereabouts::new(&args.place);
    let max_volumes = where_is.checked(max_volumes(&args.own, std::env::var(MAX_VOLUMES).ok()));
    let registration = where_is.checked(registration(&args.own, &args.serve));
    let id = where_is.node(args.own.node_id).await;
    let zone = where_is.zone(args.place.zone.clone()).await;
    let types = where_is
        .types(args.own.instance_type, args.own.instance_types_file)
        .await;
    let (Some(id), Some(zone), Some(max_volumes), Some(registration)) =
        (id, zone, max_volumes, registration)
    else {
        return Err(where_is.check().into());
    };
    // The node asks for nothing any more, and keeps no client for it.
    drop(where_is);
    let path = std::env::var_os("PATH");
    for problem in problems(args.device_dir.as_deref(), path.as_deref()) {
        tracing::warn!("{problem}");
    }
    let settings = Settings {
        id,
        zone,
        max_volumes,
        categories: args.own.instance_categories,
        types,
        device_dir: args.device_dir,
        kubelet_dir: args.own.kubelet_dir,
        state_dir: args.own.state_dir,
    };
    let serve = args.serve;
    let listener = http::bind(serve.http_address).await?;
    let node = node(settings, serve.driver_name.clone(), args.own.tool_memory);
    seen(&node, args.require_shared_mounts, registration.is_some()).await?;
    let tasks = node.tasks().clone();
    let health = Health {
        endpoint: serve.endpoint.clone(),
        cloud: None,
        node: Some(Arc::clone(&node)),
        shared: args.require_shared_mounts,
        registration: registration.clone(),
    };
    if let Some(registration) = registration.clone() {
        // Not one of the tasks that the end waits for.
        Tasks::default().start(renewal::keep(Arc::clone(&node), registration));
    }
    let services = Services {
        name: serve.driver_name,
        controller: None,
        node: Some(Service::new(node)),
        registration,
    };
    tokio::select! {
        served = server::serve(&serve.endpoint, services, tasks, stop, serve.drain_timeout) => Ok(served?),
        never = http::serve(listener, health) => match never {},
    }
}

/// That kubelet sees what is mounted here: else a start is refused, or, where that is not asked for and a kubelet is there, it is
/// told.
async fn seen(node: &Node, required: bool, kubelet: bool) -> Result<(), WrongSettings> {
    if !required && !kubelet {
        return Ok(());
    }
    match node.in_sight().await {
        Ok(()) => Ok(()),
        Err(problem) if required => Err(WrongSettings(vec![problem])),
        Err(problem) => {
            tracing::warn!("{problem}");
            Ok(())
        }
    }
}

/// Why volumes will not be mounted here, as far as that shows before the first one comes. It is told
/// and ends nothing: raw block volumes need none of the tools.
fn problems(device_dir: Option<&Path>, path: Option<&OsStr>) -> Vec<String> {
    let mut problems = Vec::new();
    if !super::is_root() {
        problems.push("this is not root: no volume can be mounted".to_owned());
    }
    let missing = tools::missing(path);
    if !missing.is_empty() {
        problems.push(format!(
            "not in PATH, and needed for volumes with a filesystem: {}",
            missing.join(", ")
        ));
    }
    if let Some(dir) = device_dir.filter(|dir| !dir.is_dir()) {
        problems.push(format!(
            "--device-dir {} is no directory yet: with a fake cloud it is DIR/nodes/NODE-ID and comes \
             with the first attached disk",
            dir.display()
        ));
    }
    problems
}

/// The node on this machine.
pub(crate) fn node(
    settings: Settings,
    driver: DriverName,
    tool_memory: Option<Bytes>,
) -> Arc<Node> {
    tracing::info!(node.id = %settings.id, zone = %settings.zone, "handling the volumes of this node");
    let exec = Arc::new(Processes);
    let host = Arc::new(Linux::new(Arc::clone(&exec) as _, Roots::default()));
    let node = Node::new(host, exec, settings).of_driver(driver);
    let roots = Roots::default();
    let own = |limit: Bytes| Bytes(limit.0.saturating_sub(OWN_MEMORY));
    let memory = tool_memory.or_else(|| memory::limit(&roots.proc, &roots.sys).map(own));
    Arc::new(match memory {
        Some(memory) => node.with_tool_memory(memory),
        None => node,
    })
}

/// The registration with kubelet, if this process is to see to it.
pub(crate) fn registration(
    own: &cli::NodeSelf,
    serve: &cli::Serve,
) -> Result<Option<Registration>, WrongSettings> {
    let Some(directory) = &own.registration_dir else {
        return Ok(None);
    };
    let csi = own.kubelet_socket.as_deref();
    let csi = csi.unwrap_or_else(|| serve.endpoint.path()).to_owned();
    Registration::new(directory, serve.driver_name.clone(), csi)
        .map(Some)
        .map_err(|error| WrongSettings(vec![chain(&error)]))
}

/// The limit from the flag, else from the vendor's variable.
pub(crate) fn max_volumes(
    own: &cli::NodeSelf,
    variable: Option<String>,
) -> Result<Option<u32>, WrongSettings> {
    match (
        own.max_volumes_per_node,
        variable.filter(|text| !text.trim().is_empty()),
    ) {
        (Some(most), _) => Ok(Some(most)),
        (None, None) => Ok(None),
        (None, Some(text)) => match text.trim().parse() {
            Ok(most) if most > 0 => Ok(Some(most)),
            _ => Err(WrongSettings(vec![format!(
                "{MAX_VOLUMES} is {text:?}; allowed: a whole number, 1 or more"
            )])),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(flag: Option<u32>, variable: Option<&str>) -> Result<Option<u32>, WrongSettings> {
        let own = cli::NodeSelf {
            node_id: None,
            max_volumes_per_node: flag,
            instance_categories: Vec::new(),
            instance_type: None,
            instance_types_file: None,
            kubelet_dir: "/nowhere".into(),
            state_dir: "/nowhere".into(),
            tool_memory: None,
            registration_dir: None,
            kubelet_socket: None,
        };
        max_volumes(&own, variable.map(str::to_owned))
    }

    #[test]
    fn the_flag_comes_before_the_vendors_variable() {
        assert_eq!(limit(Some(5), Some("9")).unwrap(), Some(5));
        assert_eq!(limit(None, Some("9")).unwrap(), Some(9));
        assert_eq!(limit(None, Some("")).unwrap(), None);
    }

    #[test]
    fn missing_tools_and_a_missing_directory_are_told_by_name() {
        let told = problems(Some(Path::new("/nowhere")), Some(OsStr::new("/nowhere"))).join("\n");
        assert!(
            told.contains("blkid") && told.contains("mkfs.btrfs"),
            "{told}"
        );
        assert!(
            told.contains("--device-dir /nowhere is no directory"),
            "{told}"
        );
    }

    #[test]
    fn a_limit_of_nothing_is_refused_by_name_and_value() {
        for text in ["0", "-3", "many"] {
            let refused = limit(None, Some(text)).unwrap_err().to_string();
            assert!(
                refused.contains("MAX_VOLUMES_PERNODE") && refused.contains(text),
                "{refused}"
            );
        }
    }
}
