//! Successful responses of all actions: every value is one of the body, and no row is lost.

use std::fmt::{Debug, Display};

use ecs::Page;
use ecs::credential::Credentials;
use ecs::fuzzing;
use ecs::model::{
    Disk, DiskHealth, DiskId, Instance, InstanceType, Snapshot, SnapshotGroup, SnapshotGroupId, SnapshotId, Task,
};
use ecs::wire::{Created, DeletedGroup, DescribedStock, Modified};
use serde_json::Value;

use crate::input::Input;

const SECRET: &str = "secret-of-the-key";

fn read<T: serde::de::DeserializeOwned>(action: &'static str, body: &[u8]) -> Option<T> {
    let credentials = Credentials::new("LTAI5tEXAMPLE", SECRET);
    match fuzzing::parse(action, 200, body, &credentials)? {
        Ok(parsed) => Some(parsed),
        Err(error) => {
            // A success that cannot be parsed may have taken effect.
            assert!(error.may_have_taken_effect());
            let text = format!("{error} {error:?}");
            assert!(!text.contains(SECRET), "{text}");
            None
        }
    }
}

fn check_id(id: Option<impl Display>, json: &Value) {
    let Some(id) = id else {
        return;
    };
    let names = ["DiskId", "SnapshotId", "SnapshotGroupId", "id"];
    let mut values = names.iter().filter_map(|name| json.get(name)?.as_str());
    assert!(values.any(|value| value == id.to_string()), "{id}: {json}");
}

fn check_page<R: Debug>(page: Option<Page<R>>, list: &str, json: &Value, id: impl Fn(&R) -> String) {
    let Some(page) = page else {
        return;
    };
    let object = json.get(list).and_then(Value::as_object).expect("a list");
    let lists: Vec<_> = object.values().filter_map(Value::as_array).collect();
    // Of several lists, one is read.
    let rows = page.rows.len() + page.unreadable.len();
    assert!(
        lists.iter().any(|rows_of| rows_of.len() == rows) || lists.is_empty() && rows == 0,
        "{json}"
    );
    for row in &page.rows {
        let id = id(row);
        let is_listed = |row: &&Value| {
            row.as_object()
                .is_some_and(|members| members.values().any(|value| value.as_str() == Some(&id)))
        };
        assert!(
            lists.iter().any(|rows| rows.iter().any(|row| is_listed(&row))),
            "{id}: {json}"
        );
    }
    assert!(
        page.next
            .is_none_or(|next| !next.is_empty() && json["NextToken"] == next.as_str())
    );
}

/// The action, and the body.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let selected = input.byte() % 15;
    let body = input.0;
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    match selected {
        0 => check_id(
            read::<Created<DiskId>>("CreateDisk", body).map(|created| created.id),
            &json,
        ),
        1 => check_id(
            read::<Created<SnapshotId>>("CreateSnapshot", body).map(|created| created.id),
            &json,
        ),
        2 => check_id(
            read::<Created<SnapshotGroupId>>("CreateSnapshotGroup", body).map(|created| created.id),
            &json,
        ),
        3 => {
            let page: Option<Page<Disk>> = read("DescribeDisks", body);
            for disk in page.iter().flat_map(|page| &page.rows) {
                assert!(!disk.is_free() || disk.holders().is_empty());
            }
            check_page(page, "Disks", &json, |row| row.id.to_string());
        }
        4 => check_page(read("DescribeSnapshots", body), "Snapshots", &json, |row: &Snapshot| {
            row.id.to_string()
        }),
        5 => check_page(
            read("DescribeSnapshotGroups", body),
            "SnapshotGroups",
            &json,
            |row: &SnapshotGroup| row.id.to_string(),
        ),
        6 => check_page(read("DescribeInstances", body), "Instances", &json, |row: &Instance| {
            row.id.to_string()
        }),
        7 => check_page(
            read("DescribeInstanceTypes", body),
            "InstanceTypes",
            &json,
            |row: &InstanceType| row.name.clone(),
        ),
        8 => check_page(read("DescribeTasks", body), "TaskSet", &json, |row: &Task| {
            row.id.to_string()
        }),
        9 => {
            let page: Option<Page<DiskHealth>> = read("DescribeDisksFullStatus", body);
            assert!(page.is_none() || json.is_object(), "{json}");
        }
        10 => {
            let stock: Option<DescribedStock> = read("DescribeAvailableResource", body);
            assert!(stock.is_none() || json.is_object(), "{json}");
        }
        11 => {
            let modified: Option<Modified> = read("ModifyDiskSpec", body);
            assert!(modified.is_none() || json.is_object(), "{json}");
        }
        12 => {
            let deleted: Option<DeletedGroup> = read("DeleteSnapshotGroup", body);
            for remaining in deleted.into_iter().flat_map(DeletedGroup::remaining) {
                assert!(!remaining.code.is_empty(), "{json}");
            }
        }
        _ => {
            // An answer without a result.
            let members: Option<serde_json::Map<String, Value>> = read("AttachDisk", body);
            assert!(members.is_none() || json.is_object(), "{json}");
        }
    }
}
