use ecs::model::id::{PLAIN, is_plain};

ecs::id!(
    /// The cluster whose disks this driver owns; it is in a tag of each disk and snapshot.
    ClusterId, "cluster ID", PLAIN, is_plain
);
