//! `diskplugin orphans`: reports disks and snapshots that Kubernetes does not use, and deletes named ones.

use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;

use super::classify::{Rules, classify};
use super::finding::{Class, DeletionResult, ResourceId};
use super::flags::Flags;
use super::observe::Observer;
use super::render::table;
use crate::base::{SystemClock, Tasks};
use crate::cli::{InvalidSettings, Location, OutputFormat};
use crate::disk::DiskServices;
use crate::model::ClusterId;
use crate::ops::{Connect, print};

/// Something was found, or a named resource was not deleted.
const FOUND: u8 = 1;

/// Reports, and deletes what is named.
pub async fn run(args: Flags, connect: Connect) -> anyhow::Result<ExitCode> {
    if !args.delete.is_empty() && !args.yes && !std::io::stdin().is_terminal() {
        let problem = "--delete requires confirmation on a terminal; without one, set --yes";
        return Err(InvalidSettings(vec![problem.to_owned()]).into());
    }
    let mut location = Location::new(&args.common.location);
    let metadata = args.common.location.metadata()?;
    let region = location.region().await;
    let cluster_id = args.common.owner.id(&mut location);
    let (Some(region), Some(cluster_id)) = (region, cluster_id) else {
        return Err(location.into_error().into());
    };
    let cluster = args.common.kubernetes.require().await?;
    let client = connect(args.common.cloud, metadata, &region)?;
    let disks = DiskServices::new(client.ecs, cluster_id.clone(), &Tasks::default());
    let observer = Observer {
        cluster,
        disks: Arc::new(disks),
        driver: args.common.driver.driver_name,
        clock: Arc::new(SystemClock),
    };
    let rules = Rules {
        cluster: cluster_id.clone(),
        min_age: args.min_age,
        allow_unreferenced: args.allow_unreferenced,
    };
    let observed = observer
        .observe()
        .await
        .map_err(|error| anyhow::anyhow!(error.for_user()))?;
    let report = classify(&observed, &rules)?;
    let mut shown = report.clone();
    shown
        .findings
        .retain(|one| args.class.is_empty() || args.class.contains(&one.class));
    if let Some(older_than) = args.older_than {
        if !args.yes && !is_confirmed(&args.delete, &cluster_id)? {
            print("Nothing was deleted.")?;
            return Ok(ExitCode::from(FOUND));
        }
        // One after the other, each once.
        let (mut deletions, mut known) = (Vec::new(), BTreeSet::new());
        for id in args.delete.iter().filter(|id| known.insert(*id)) {
            deletions.push(observer.delete(id, &report, older_than).await);
        }
        shown.deletions = Some(deletions);
    }
    print(match args.output {
        OutputFormat::Table => table(&shown),
        OutputFormat::Json => serde_json::to_string(&shown)?,
    })?;
    let is_clean = match &shown.deletions {
        Some(deletions) => deletions.iter().all(|one| one.result == DeletionResult::Deleted),
        None => shown.findings.iter().all(|one| one.class == Class::BeforeDeletion),
    };
    Ok(if is_clean {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FOUND)
    })
}

/// Requests confirmation on standard error, so that standard output has only results.
fn is_confirmed(ids: &[ResourceId], cluster: &ClusterId) -> anyhow::Result<bool> {
    let names: Vec<_> = ids.iter().map(ResourceId::as_str).collect();
    let mut terminal = std::io::stderr();
    write!(
        terminal,
        "Delete {} of cluster ID {cluster}, with all data? Type yes: ",
        names.join(", ")
    )?;
    terminal.flush()?;
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.context("cannot read the confirmation")?;
    Ok(line.trim() == "yes")
}
