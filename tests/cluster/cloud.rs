//! The fake cloud, and helpers to query it.

use serde_json::{Value, json};

use crate::common::fake::Fake;

/// Attach limit of an instance, including the system disk; `values.yaml` configures the same for the driver.
pub(crate) const DISKS: u64 = 4;
/// Categories that are out of stock from the start; no scenario may change them.
const OUT_OF_STOCK: [&str; 1] = ["cn-beijing-c/cloud_efficiency"];

/// Starts a fake cloud with the shortest delays of the real cloud.
pub(crate) async fn start() -> Fake {
    Fake::start_with_pdeathsig(&[
        "--create-delay=200ms",
        "--attach-delay=500ms",
        "--detach-delay=300ms",
        "--snapshot-delay=500ms",
        &format!("--disk-quantity={DISKS}"),
        &format!("--out-of-stock={}", OUT_OF_STOCK.join(",")),
    ])
    .await
}

/// Sets these categories out of stock, in addition to those from the start.
pub(crate) async fn set_out_of_stock(cloud: &Fake, more: &[&str]) {
    let all: Vec<&str> = OUT_OF_STOCK.iter().chain(more).copied().collect();
    cloud.configure(json!({"out_of_stock": all})).await;
}

/// The current state of the disk.
pub(crate) async fn disk(cloud: &Fake, id: &str) -> Option<Value> {
    let disks = cloud.disks().await;
    disks.into_iter().find(|disk| disk["id"] == id)
}

/// The IDs of the instances to which the disk is attached, attaching or detaching.
pub(crate) fn holders(disk: &Value) -> Vec<String> {
    let held = disk["attachments"].as_array().expect("a disk has attachments");
    let ids = held.iter().filter_map(|held| held["instance"].as_str());
    ids.map(str::to_owned).collect()
}
