//! The fake cloud, and the scenarios' words for what is in it.

use serde_json::{Value, json};

use crate::common::fake::Fake;

/// How many disks an instance takes, its system disk included; `values.yaml` says the same to the driver.
pub(crate) const DISKS: u64 = 4;
/// What cannot be bought from the start: which of them are, no scenario may change.
const SOLD_OUT: [&str; 1] = ["cn-beijing-c/cloud_efficiency"];

/// Starts one that is as slow as the real one is at its best.
pub(crate) async fn start() -> Fake {
    Fake::start_with_pdeathsig(&[
        "--create-delay=200ms",
        "--attach-delay=500ms",
        "--detach-delay=300ms",
        "--snapshot-delay=500ms",
        &format!("--disk-quantity={DISKS}"),
        &format!("--out-of-stock={}", SOLD_OUT.join(",")),
    ])
    .await
}

/// Of these, and of what is sold out from the start, nothing can be bought from now on.
pub(crate) async fn sell_out(cloud: &Fake, more: &[&str]) {
    let all: Vec<&str> = SOLD_OUT.iter().chain(more).copied().collect();
    cloud.configure(json!({"out_of_stock": all})).await;
}

/// The disk of this id, as it really is.
pub(crate) async fn disk(cloud: &Fake, id: &str) -> Option<Value> {
    let disks = cloud.disks().await;
    disks.into_iter().find(|disk| disk["id"] == id)
}

/// The ids of the instances that have it, also of those that are about to, or are letting go.
pub(crate) fn holders(disk: &Value) -> Vec<String> {
    let held = disk["attachments"]
        .as_array()
        .expect("a disk has attachments");
    let ids = held.iter().filter_map(|held| held["instance"].as_str());
    ids.map(str::to_owned).collect()
}
