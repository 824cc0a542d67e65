//! `diskplugin all-in-one`: Controller and Node on one socket.

use self::serve::serve;
use super::{cloud, signal};
use crate::cli::{self, CloudKind};
use crate::telemetry::Telemetry;

#[cfg(feature = "mock-cloud")]
mod mock;
mod serve;

pub(crate) async fn run(args: cli::AllInOne, telemetry: Telemetry) -> anyhow::Result<()> {
    let stop = signal::stop()?;
    match args.cloud_kind {
        CloudKind::Real => serve(args, cloud::client, None, telemetry, stop).await,
        #[cfg(feature = "mock-cloud")]
        CloudKind::Mock => Box::pin(mock::run(args, telemetry, stop)).await,
    }
}
