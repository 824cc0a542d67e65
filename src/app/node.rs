//! `diskplugin node`: the DaemonSet's container. It needs no cloud credentials.

use std::sync::Arc;

use super::place::Whereabouts;
use super::{WrongSettings, signal};
use crate::cli;
use crate::csi::node::Service;
use crate::csi::server::{self, Services};
use crate::host::{Linux, Processes, Roots};
use crate::node::{Node, Settings};

/// The vendor's variable for the same thing, which charts in use today set.
pub(crate) const MAX_VOLUMES: &str = "MAX_VOLUMES_PERNODE";

pub(crate) async fn run(args: cli::Node) -> anyhow::Result<()> {
    let stop = signal::stop()?;
    let mut where_is = Whereabouts::new(&args.place)?;
    let max_volumes = where_is.checked(max_volumes(&args.own, std::env::var(MAX_VOLUMES).ok()));
    let id = where_is.node(args.own.node_id).await;
    let zone = where_is.zone(args.place.zone).await;
    let (Some(id), Some(zone), Some(max_volumes)) = (id, zone, max_volumes) else {
        return Err(where_is.check().into());
    };
    let node = node(Settings {
        id,
        zone,
        max_volumes,
        device_dir: args.device_dir,
    });
    let tasks = node.tasks().clone();
    let services = Services {
        controller: None,
        node: Some(Service::new(node)),
    };
    let serve = args.serve;
    server::serve(&serve.endpoint, services, tasks, stop, serve.drain_timeout).await?;
    Ok(())
}

/// The node on this machine.
pub(crate) fn node(settings: Settings) -> Arc<Node> {
    tracing::info!(node.id = %settings.id, zone = %settings.zone, "handling the volumes of this node");
    let exec = Arc::new(Processes);
    let host = Arc::new(Linux::new(Arc::clone(&exec) as _, Roots::default()));
    Arc::new(Node::new(host, exec, settings))
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
