use ecs::poll::{Observation, PollMode};
use ecs::{TagResources, TagTarget, UntagResources};

use super::attachments::Attachments;
use super::target::Target;
use crate::disk::Result;
use crate::disk::error::{cloud, rejected, wait};
use crate::disk::stale_read::{READ_LAG, StaleReadGuard};
use crate::model::{Disk, Failure, InstanceId, tag};

fn read_only_tag(node: &InstanceId) -> String {
    format!("{}{node}", tag::READ_ONLY_ON)
}

pub(super) fn is_read_only(row: &Disk, node: &InstanceId) -> bool {
    let value = row.tags.get(&read_only_tag(node));
    value.is_some_and(|value| value == SET)
}

const SET: &str = "true";

/// Rejects an access mode other than that of the existing attachment. Tags are as stale as rows.
pub(super) async fn check(shared: &Attachments, target: Target<'_>, wanted: bool) -> Result<()> {
    let Target { deadline, disk, node } = target;
    let mut differs = StaleReadGuard::default();
    let decide = |observation: Observation<Disk>| {
        let agrees = is_read_only(&*observation.row()?, node) == wanted;
        (agrees || differs.confirmed_after(READ_LAG)).then_some(agrees)
    };
    let agrees = shared.disks.wait_until(disk, deadline, PollMode::Change, decide);
    let step = format!("read whether disk {disk} is attached to node {node} read-only");
    if agrees.await.map_err(wait(step))? {
        return Ok(());
    }
    let (found, wanted) = if wanted {
        ("writable", "read-only")
    } else {
        ("read-only", "writable")
    };
    let tag = read_only_tag(node);
    let text = format!(
        "disk {disk} is attached to node {node} {found}, not {wanted} as requested (the disk's tag {tag} marks it \
         read-only on that node)"
    );
    Err(rejected(Failure::AttachModeConflict, text, None))
}

pub(super) async fn set(shared: &Attachments, target: Target<'_>, set: bool) -> Result<()> {
    let Target { deadline, disk, node } = target;
    let targets = TagTarget::Disks(vec![disk.clone()]);
    let key = read_only_tag(node);
    let tagged = if set {
        let tags = [(key, SET.to_owned())].into();
        let request = TagResources { targets, tags };
        shared.ecs.tag_resources(deadline, &request).await
    } else {
        let keys = vec![key];
        let request = UntagResources { targets, keys };
        shared.ecs.untag_resources(deadline, &request).await
    };
    tagged.map_err(cloud(format!(
        "tag disk {disk} as read-only or writable on node {node}"
    )))
}
