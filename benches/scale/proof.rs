//! Compares the disks of the cloud with the responses that callers received.

use std::collections::HashMap;
use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::model::DiskStatus;
use ecs::DescribeDisks;

use super::figures::Figures;
use super::fleet::Fleet;
use super::memory_cloud::client;

/// Completes the figures.
pub(crate) async fn conclude(fleet: &Fleet, figures: &mut Figures) {
    figures.fleet = fleet.volumes.len();
    figures.wrong = compare(fleet).await;
}

/// Errors: a disk without a caller, a name with two disks, a volume that is not on its node.
pub(crate) async fn compare(fleet: &Fleet) -> Vec<String> {
    let audit = fleet.stage.cloud.audit();
    let doubles = audit.duplicates();
    let mut wrong: Vec<String> = doubles.iter().map(|made| format!("{made:?}")).collect();
    let mut disks = disks(fleet).await;
    for volume in &fleet.volumes {
        let node = volume.node.map(|node| fleet.stage.nodes[node].0.as_str());
        let name = &volume.claim.name;
        match disks.remove(&volume.id) {
            None => wrong.push(format!("{name} ({}) does not exist", volume.id)),
            Some(on) if on.as_deref() == node => {}
            Some(on) => wrong.push(format!("{name} is on {on:?} instead of {node:?}")),
        }
    }
    wrong.extend(disks.keys().map(|id| format!("{id} is leaked")));
    wrong
}

/// All disks with their instances, listed without the controller.
async fn disks(fleet: &Fleet) -> HashMap<String, Option<String>> {
    let ecs = client(&fleet.stage.cloud);
    let (mut disks, mut next) = (HashMap::new(), None);
    loop {
        let query = DescribeDisks {
            page_size: Some(500),
            next,
            ..DescribeDisks::default()
        };
        let deadline = Deadline::after(Duration::from_mins(1));
        let page = ecs.describe_disks(deadline, &query).await;
        let page = page.expect("no fault is injected into lists");
        for row in page.rows {
            let in_use = row.status == DiskStatus::InUse;
            let holder = row.attachments.first().filter(|_| in_use);
            disks.insert(row.id.to_string(), holder.map(ToString::to_string));
        }
        next = page.next;
        if next.is_none() {
            return disks;
        }
    }
}
