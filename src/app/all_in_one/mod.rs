//! `diskplugin all-in-one`: Controller and Node on one socket.

use std::future::Future;

use self::driver::Driver;
use super::node::{MAX_VOLUMES, instance_types, max_volumes, registration};
use super::{cloud, signal};
use crate::cli::{self, CloudKind, Location};
use crate::node::NodeSettings;
use crate::telemetry::Telemetry;

mod driver;
#[cfg(feature = "mock-cloud")]
mod mock;

pub(crate) async fn run(args: cli::AllInOne, telemetry: Telemetry) -> anyhow::Result<()> {
    let stop = signal::stop()?;
    match args.cloud_kind {
        CloudKind::Real => real(args, telemetry, stop).await,
        #[cfg(feature = "mock-cloud")]
        CloudKind::Mock => Box::pin(mock::run(args, telemetry, stop)).await,
    }
}

async fn real(args: cli::AllInOne, telemetry: Telemetry, stop: impl Future<Output = ()> + Send) -> anyhow::Result<()> {
    let mut location = Location::new(&args.location);
    let metadata = args.location.metadata()?;
    let variable = std::env::var(MAX_VOLUMES).ok();
    let max_volumes = location.checked(max_volumes(&args.node, variable));
    let registration = location.checked(registration(&args.node, &args.server));
    let region = location.region(args.location.region.clone()).await;
    let zone = location.zone(args.location.zone.clone()).await;
    let id = location.node(args.node.node_id.clone()).await;
    let (instance_type, file) = (args.node.instance_type.clone(), args.node.instance_types_file.clone());
    let instance_types = instance_types(&mut location, instance_type, file).await;
    let cluster = args.owner.id(&mut location);
    let (Some(region), Some(zone), Some(id), Some(cluster)) = (region, zone, id, cluster) else {
        return Err(location.into_error().into());
    };
    let (Some(max_volumes), Some(registration)) = (max_volumes, registration) else {
        return Err(location.into_error().into());
    };
    let driver = Driver {
        server: args.server,
        cloud: cloud::client(args.cloud, metadata, &region)?,
        registration,
        region,
        cluster,
        node: NodeSettings {
            id,
            zone,
            max_volumes,
            categories: args.node.instance_categories.clone(),
            instance_types,
            device_dir: None,
            kubelet_dir: args.node.directories.kubelet_dir.clone(),
            state_dir: args.node.directories.state_dir.clone(),
        },
        telemetry,
        pages: args.pages,
        controller: args.controller,
        node_args: args.node,
    };
    driver.serve(stop).await
}
