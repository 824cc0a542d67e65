//! Checks of the way to the cloud: proxy, metadata service, credentials.

use std::time::Duration;

use ecs::metadata::{Item, Metadata};

use super::check::Check;
use super::{cloud, proxy};
use crate::base::{Deadline, error_chain};
use crate::cli::{CloudArgs, LocationArgs};
use crate::disk::PermissionProbe;
use crate::model::{Failure, RegionId};
use crate::ops::Connect;

/// How long an unresponsive metadata service is waited for.
const TIMEOUT: Duration = Duration::from_secs(3);

pub(super) async fn check(location: &LocationArgs, args: CloudArgs, connect: Connect) -> anyhow::Result<Vec<Check>> {
    args.limits()?;
    let metadata = location.metadata()?;
    let (region, metadata_check) = region(location.region.clone(), &metadata).await;
    let mut found = vec![proxy::check(|name| std::env::var(name).ok()), metadata_check];
    let Some(region) = region else {
        let reason = "the region is unknown";
        found.extend(["cloud/credentials", "cloud/api"].map(|name| Check::skipped(name, reason)));
        return Ok(found);
    };
    let client = match connect(args, metadata, &region) {
        Ok(client) => client,
        Err(error) => {
            found.extend(no_credentials(error_chain(error.as_ref()), Failure::NoCredentials));
            return Ok(found);
        }
    };
    match client.credentials.provide().await {
        Ok(credentials) => {
            let until = credentials.expires.map(|at| format!(", valid until {at}"));
            let text = format!("from {}{}", credentials.origin, until.unwrap_or_default());
            found.push(Check::ok("cloud/credentials", text));
        }
        Err(error) => {
            found.extend(no_credentials(error_chain(&error), Failure::from(&error)));
            return Ok(found);
        }
    }
    let clock = client.ecs.server_clock();
    let probe = PermissionProbe { ecs: client.ecs };
    let ahead = || clock.local_ahead();
    found.extend(cloud::check(&probe, location.zone.as_ref(), ahead).await);
    Ok(found)
}

fn no_credentials(reason: String, failure: Failure) -> [Check; 2] {
    let advice = match failure {
        Failure::NoCredentials => "docs/guides/credentials.md describes the sources".to_owned(),
        failure => cloud::advice(failure),
    };
    [
        Check::failed("cloud/credentials", reason, advice),
        Check::skipped("cloud/api", "no credentials are available"),
    ]
}

/// The region, and the check of the metadata service.
async fn region(given: Option<RegionId>, metadata: &Metadata) -> (Option<RegionId>, Check) {
    let name = "cloud/metadata";
    let read = metadata.get(Item::REGION_ID, Deadline::after(TIMEOUT)).await;
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
