//! `diskplugin all-in-one`: Controller and Node on one socket.

use std::future::Future;

use self::driver::Driver;
use super::node::{Identity, MAX_VOLUMES, instance_types, max_volumes, registration, settings};
use super::{cloud, signal};
use crate::cli::{self, CloudKind, Location};
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
    let mut location = Location::new(&args.common.location);
    let metadata = args.common.location.metadata()?;
    let variable = std::env::var(MAX_VOLUMES).ok();
    let max_volumes = location.checked(max_volumes(&args.node, variable));
    let registration = location.checked(registration(&args.node, &args.common.server));
    let region = location.region(args.common.location.region.clone()).await;
    let zone = location.zone(args.common.location.zone.clone()).await;
    let id = location.node(args.node.node_id.clone()).await;
    let (instance_type, file) = (args.node.instance_type.clone(), args.node.instance_types_file.clone());
    let instance_types = instance_types(&mut location, instance_type, file).await;
    let cluster = args.common.owner.id(&mut location);
    let (Some(region), Some(zone), Some(id), Some(cluster)) = (region, zone, id, cluster) else {
        return Err(location.into_error().into());
    };
    let (Some(max_volumes), Some(registration)) = (max_volumes, registration) else {
        return Err(location.into_error().into());
    };
    let identity = Identity {
        id,
        zone,
        instance_types,
    };
    let driver = Driver {
        server: args.common.server,
        cloud: cloud::client(args.common.cloud, metadata, &region)?,
        registration,
        region,
        cluster,
        node: settings(identity, max_volumes, None, &args.node),
        telemetry,
        pages: args.common.pages,
        controller: args.common.controller,
        node_args: args.node,
    };
    driver.serve(stop).await
}
