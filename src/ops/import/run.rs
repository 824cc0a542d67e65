//! Reads the disk and the volumes of the cluster, and prints the objects if the disk can be mounted.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, bail};
use ecs::DescribeDisks;

use super::flags::Flags;
use crate::base::{Deadline, error_chain};
use crate::cli::Location;
use crate::cluster::static_volume::{DiskUse, StaticVolume};
use crate::disk::{adopt, import_notes, import_problems};
use crate::ops::{Connect, print};

/// Limit of all calls of the cloud.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Prints the objects of the disk, after `--adopt` has tagged it.
///
/// # Errors
/// The disk cannot be mounted or adopted, or another volume has it. Then nothing was changed.
pub async fn run(args: Flags, connect: Connect) -> anyhow::Result<()> {
    let mut location = Location::new(&args.common.location);
    let region = location.region().await;
    let owner = if args.adopt {
        args.common.owner.id(&mut location)
    } else {
        None
    };
    let (Some(region), true) = (region, owner.is_some() || !args.adopt) else {
        return Err(location.into_error().into());
    };
    let ecs = connect(args.common.cloud, args.common.location.metadata()?, &region)?.ecs;
    let (deadline, id) = (Deadline::after(TIMEOUT), &args.disk);
    let query = DescribeDisks {
        ids: Some(vec![id.clone()]),
        ..DescribeDisks::default()
    };
    let page = ecs.describe_disks(deadline, &query).await;
    let Some(disk) = page.context("cannot read the disk")?.rows.pop() else {
        bail!(
            "the region {region} has no disk {id}: check the ID, --region, the account of the access key, and that it has ecs:DescribeDisks"
        );
    };
    let (mut problems, mut notes) = (import_problems(&disk, owner.as_ref()), import_notes(&disk, args.adopt));
    let driver = args.common.driver.driver_name;
    let read = match args.common.kubernetes.connect().await {
        _ if !args.common.kubernetes.exists() => Err("no kubeconfig exists; set --kubeconfig".to_owned()),
        Ok(cluster) => cluster.disk_use(&driver, &disk).await.map_err(|error| error.for_user()),
        Err(error) => Err(error_chain(&error)),
    };
    let used = read.unwrap_or_else(|why| {
        let unchecked = format!("not checked whether a PersistentVolume uses the disk: {why}");
        let to = if args.adopt { &mut problems } else { &mut notes };
        to.push(unchecked);
        DiskUse::default()
    });
    problems.extend(used.volume.map(|name| {
        format!("PersistentVolume {name} uses it; set Retain there, and delete it first (docs/guides/migrate.md)")
    }));
    anyhow::ensure!(
        problems.is_empty(),
        "disk {id} is not imported:\n  {}",
        problems.join("\n  ")
    );
    if let Some(owner) = &owner {
        adopt(&ecs, deadline, &disk, owner).await?;
    }
    for note in notes {
        writeln!(std::io::stderr(), "note: {note}")?;
    }
    print(StaticVolume {
        driver,
        disk,
        namespace: args.namespace,
        claim: args.claim,
        storage_class: args.storage_class,
        filesystem: (!args.block).then_some(args.fs_type),
        with_category: used.has_category,
    })
}
