//! The checks of the cloud: what this process finds on its way there, then those of `ops`.

use std::time::Duration;

use ecs::metadata::{Item, Metadata};

use super::proxy;
use crate::app::cloud::{self, CloudClient};
use crate::base::{Deadline, error_chain};
use crate::cli;
use crate::disk::PermissionProbe;
use crate::model::RegionId;
use crate::ops::doctor::Check;
use crate::ops::doctor::cloud as checks;

/// How long an unresponsive metadata service is waited for.
const TIMEOUT: Duration = Duration::from_secs(3);

pub(super) async fn check(location: &cli::LocationArgs, args: cli::CloudArgs) -> anyhow::Result<Vec<Check>> {
    cloud::limits(&args)?;
    let metadata = location.metadata()?;
    let (region, metadata_check) = region(location.region.clone(), &metadata).await;
    let mut found = vec![proxy::check(|name| std::env::var(name).ok()), metadata_check];
    let Some(region) = region else {
        let reason = "the region is unknown";
        found.extend(["cloud/credentials", "cloud/api"].map(|name| Check::skipped(name, reason)));
        return Ok(found);
    };
    let CloudClient {
        ecs,
        access,
        server_clock,
    } = match cloud::client(args, metadata, &region) {
        Ok(client) => client,
        Err(error) => {
            let advice = "docs/guides/credentials.md describes the sources";
            found.push(Check::failed("cloud/credentials", error_chain(error.as_ref()), advice));
            found.push(Check::skipped("cloud/api", "no credentials are available"));
            return Ok(found);
        }
    };
    match access.provider.provide().await {
        Ok(credentials) => {
            let until = credentials.expires.map(|at| format!(", valid until {at}"));
            let text = format!("from {}{}", credentials.origin, until.unwrap_or_default());
            found.push(Check::ok("cloud/credentials", text));
        }
        Err(error) => {
            let advice = "docs/guides/credentials.md describes the sources";
            found.push(Check::failed("cloud/credentials", error_chain(&error), advice));
            found.push(Check::skipped("cloud/api", "no credentials are available"));
            return Ok(found);
        }
    }
    let probe = PermissionProbe::new(ecs);
    let zone = location.zone.as_ref();
    let ahead = || server_clock.local_ahead();
    found.extend(checks::check(&probe, zone, ahead).await);
    Ok(found)
}

/// The region, and the check of the metadata service.
async fn region(given: Option<RegionId>, metadata: &Metadata) -> (Option<RegionId>, Check) {
    let name = "cloud/metadata";
    let read = metadata.get(Item::RegionId, Deadline::after(TIMEOUT)).await;
    match (read, given) {
        (Ok(own), Some(given)) if own != given.as_str() => {
            let text = format!("this instance is in region {own}, and --region is {given}");
            let advice = "disks can be attached only to instances of their region";
            (Some(given), Check::warning(name, text, advice))
        }
        (Ok(own), given) => {
            let text = format!("the metadata service responds: region {own}");
            (given.or_else(|| own.parse().ok()), Check::ok(name, text))
        }
        (Err(error), Some(given)) => {
            tracing::debug!(error = error_chain(&error), "the metadata service does not respond");
            let text = "it does not respond; it is needed only for the zone without --zone, and for the credentials of an \
                        instance role";
            (Some(given), Check::skipped(name, text))
        }
        (Err(error), None) => {
            let advice = "set --region, or run on an instance that reaches the metadata service";
            (None, Check::failed(name, error_chain(&error), advice))
        }
    }
}
