//! Parameters of tags.

use super::params::Params;
use crate::action::{TagResources, TagTarget, UntagResources};

pub fn set(request: &TagResources) -> Params {
    targets(&request.targets).tags(&request.tags)
}

pub fn remove(request: &UntagResources) -> Params {
    targets(&request.targets).list("TagKey", &request.keys)
}

fn targets(targets: &TagTarget) -> Params {
    let kind = |kind| Params::default().set("ResourceType", kind);
    match targets {
        TagTarget::Disks(ids) => kind("disk").list("ResourceId", ids),
        TagTarget::Snapshots(ids) => kind("snapshot").list("ResourceId", ids),
    }
}
