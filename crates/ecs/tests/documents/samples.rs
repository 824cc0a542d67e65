//! `samples.json`: for each action its page, the sample response, and the result that it must have. The values are the
//! examples of the pages, as the vendor's SDK repeats them beside each field (`ecs-20140526` v7.2.0 for Go).

use std::collections::BTreeSet;

use ecs::Page;
use ecs::client::ACTIONS;
use ecs::model::{
    Disk, DiskHealth, DiskId, Instance, InstanceType, Snapshot, SnapshotGroup, SnapshotGroupId, SnapshotId, Task,
};
use ecs::wire::{self, Created, DeletedGroup, DescribedStock, Modified};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Debug, Deserialize)]
struct Sample {
    action: String,
    source: String,
    expected: Value,
    response: Value,
}

fn samples() -> Vec<Sample> {
    // The documents mask the ends of IDs.
    let text = include_str!("samples.json").replace('*', "0");
    serde_json::from_str(&text).expect("a sample is JSON")
}

fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> T {
    wire::read(body).expect("a sample is a response")
}

fn rows<R>(page: &Page<R>, to_json: impl Fn(&R) -> Value) -> Value {
    assert!(page.unreadable.is_empty(), "{:?}", page.unreadable);
    page.rows.iter().map(to_json).collect()
}

fn disk(disk: &Disk) -> Value {
    let (created, attached, detached) = (disk.created, disk.attached, disk.detached);
    json!({
        "id": disk.id, "serial": disk.serial.as_ref().map(ToString::to_string), "name": disk.name, "zone": disk.zone,
        "category": disk.category.as_str(), "level": disk.performance_level, "iops": disk.provisioned_iops,
        "bursting": disk.bursting, "multi_attach": disk.multi_attach,
        "delete_with_instance": disk.delete_with_instance, "portable": disk.portable,
        "resource_group": disk.resource_group, "gib": disk.size, "type": disk.kind.as_str(),
        "status": disk.status.as_str(), "attachments": disk.attachments, "source_snapshot": disk.source_snapshot,
        "encrypted": disk.encrypted, "kms_key": disk.kms_key, "locks": disk.locks, "tags": disk.tags,
        "created": created, "attached": attached, "detached": detached,
    })
}

fn snapshot(snapshot: &Snapshot) -> Value {
    json!({
        "id": snapshot.id, "name": snapshot.name, "source": snapshot.source_disk, "gib": snapshot.source_size,
        "status": snapshot.status.as_str(), "created": snapshot.created, "available": snapshot.available,
        "encrypted": snapshot.encrypted, "tags": snapshot.tags,
    })
}

fn group(group: &SnapshotGroup) -> Value {
    let members = group
        .members
        .iter()
        .map(|member| json!([member.snapshot, member.source]));
    json!({
        "id": group.id, "status": group.status.as_str(), "created": group.created,
        "members": members.collect::<Vec<_>>(), "tags": group.tags,
    })
}

/// The result of the action.
fn parsed(action: &str, body: &[u8]) -> Value {
    match action {
        "CreateDisk" => json!(read::<Created<DiskId>>(body).id),
        "CreateSnapshot" => json!(read::<Created<SnapshotId>>(body).id),
        "CreateSnapshotGroup" => json!(read::<Created<SnapshotGroupId>>(body).id),
        "ModifyDiskSpec" => json!(read::<Modified>(body).task_id),
        "DescribeDisks" => rows(&read(body), disk),
        "DescribeSnapshots" => rows(&read(body), snapshot),
        "DescribeSnapshotGroups" => rows(&read(body), group),
        "DescribeTasks" => rows(&read(body), |task: &Task| {
            let status = task.status.as_str();
            json!({"id": task.id, "status": status, "resource": task.resource, "created": task.created})
        }),
        "DescribeDisksFullStatus" => rows(&read(body), |health: &DiskHealth| {
            let events: Vec<_> = health.events.iter().map(|event| &event.kind).collect();
            json!({"disk": health.disk, "status": health.status, "current_events": events})
        }),
        "DescribeInstances" => rows(&read(body), |instance: &Instance| {
            let (zone, status) = (&instance.zone, instance.status.as_str());
            let (kind, tags) = (&instance.instance_type, &instance.tags);
            json!({"id": instance.id, "type": kind, "zone": zone, "status": status, "tags": tags})
        }),
        "DescribeInstanceTypes" => rows(
            &read(body),
            |kind: &InstanceType| json!({"name": kind.name, "disks": kind.disk_quantity}),
        ),
        "DescribeAvailableResource" => {
            let zones = read::<DescribedStock>(body).available_zones.into_iter();
            let zones = zones.map(|zone| {
                let disks: Vec<_> = zone.categories.iter().map(|stock| stock.category.as_str()).collect();
                json!({"zone": zone.zone, "disks": disks})
            });
            zones.collect()
        }
        "DeleteSnapshotGroup" => {
            let remaining = read::<DeletedGroup>(body).remaining().into_iter();
            remaining
                .map(|one| json!({"snapshot": one.snapshot, "code": one.code, "message": one.message}))
                .collect()
        }
        _ => {
            let members: Map<String, Value> = read(body);
            assert!(
                members.contains_key("RequestId") && !members.contains_key("Code"),
                "{members:?}"
            );
            Value::Null
        }
    }
}

#[test]
fn the_sample_of_every_action_has_the_documented_values() {
    let samples = samples();
    for sample in &samples {
        let result = parsed(&sample.action, sample.response.to_string().as_bytes());
        assert_eq!(result, sample.expected, "{}", sample.action);
        assert!(sample.source.starts_with("https://"), "{}", sample.source);
    }
    let actions: BTreeSet<&str> = samples.iter().map(|sample| sample.action.as_str()).collect();
    assert_eq!(actions, ACTIONS.iter().copied().collect());
}
