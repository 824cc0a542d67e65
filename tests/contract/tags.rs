//! Tags of disks and snapshots.

use diskplugin::cloud::{
    DescribeDisks, DescribeSnapshots, Ecs, Kind, TagResources, TagTarget, UntagResources,
};
use diskplugin::model::{DiskId, Tags};

use crate::world::{World, cut, essd, made, refused, seen, seen_snapshot, soon, tags};

on_every_face!(
    a_disk_is_found_only_by_all_its_tags,
    a_snapshot_is_found_by_its_tags,
    tagging_adds_and_overwrites,
    snapshots_are_tagged_too,
    tagging_what_is_not_there_is_not_found_and_changes_nothing,
    too_many_tags_are_invalid,
    untagging_removes_the_named_keys_and_no_others,
);

async fn found(ecs: &dyn Ecs, wanted: &[(&str, &str)]) -> Vec<DiskId> {
    let query = DescribeDisks {
        tags: tags(wanted),
        ..DescribeDisks::default()
    };
    let page = ecs.describe_disks(soon(), &query).await.unwrap();
    page.rows.into_iter().map(|row| row.id).collect()
}

fn disks(ids: &[&DiskId], set: &[(&str, &str)]) -> TagResources {
    TagResources {
        targets: TagTarget::Disks(ids.iter().map(|id| (*id).clone()).collect()),
        tags: tags(set),
    }
}

pub(crate) async fn a_disk_is_found_only_by_all_its_tags(ecs: &dyn Ecs, _: &World) {
    let mut request = essd("tagged");
    request.tags = tags(&[("a", "1"), ("b", ""), ("c/d", "x y&z")]);
    let disk = ecs.create_disk(soon(), &request).await.unwrap();
    made(ecs, "plain").await;
    assert_eq!(found(ecs, &[("a", "1")]).await, std::slice::from_ref(&disk));
    let all = [("a", "1"), ("b", ""), ("c/d", "x y&z")];
    assert_eq!(found(ecs, &all).await, [disk]);
    assert_eq!(found(ecs, &[("a", "1"), ("b", "2")]).await, []);
    assert_eq!(found(ecs, &[("A", "1")]).await, []);
}

pub(crate) async fn a_snapshot_is_found_by_its_tags(ecs: &dyn Ecs, _: &World) {
    let disk = made(ecs, "source").await;
    let mut request = cut(&disk, "tagged");
    request.tags = tags(&[("a", "1")]);
    let id = ecs.create_snapshot(soon(), &request).await.unwrap();
    ecs.create_snapshot(soon(), &cut(&disk, "plain"))
        .await
        .unwrap();
    let query = DescribeSnapshots {
        tags: request.tags,
        ..DescribeSnapshots::default()
    };
    let page = ecs.describe_snapshots(soon(), &query).await.unwrap();
    let ids: Vec<_> = page.rows.into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [id]);
}

pub(crate) async fn tagging_adds_and_overwrites(ecs: &dyn Ecs, _: &World) {
    let mut request = essd("tagged");
    request.tags = tags(&[("a", "1"), ("b", "1")]);
    let one = ecs.create_disk(soon(), &request).await.unwrap();
    let two = made(ecs, "plain").await;
    let change = disks(&[&one, &two], &[("b", "2"), ("c", "2")]);
    ecs.tag_resources(soon(), &change).await.unwrap();
    let row = seen(ecs, &one).await.unwrap();
    assert_eq!(row.tags, tags(&[("a", "1"), ("b", "2"), ("c", "2")]));
    let row = seen(ecs, &two).await.unwrap();
    assert_eq!(row.tags, tags(&[("b", "2"), ("c", "2")]));
}

pub(crate) async fn snapshots_are_tagged_too(ecs: &dyn Ecs, _: &World) {
    let disk = made(ecs, "source").await;
    let id = ecs.create_snapshot(soon(), &cut(&disk, "one")).await;
    let id = id.unwrap();
    let change = TagResources {
        targets: TagTarget::Snapshots(vec![id.clone()]),
        tags: tags(&[("k", "v")]),
    };
    ecs.tag_resources(soon(), &change).await.unwrap();
    assert_eq!(seen_snapshot(ecs, &id).await.unwrap().tags, change.tags);
}

pub(crate) async fn tagging_what_is_not_there_is_not_found_and_changes_nothing(
    ecs: &dyn Ecs,
    _: &World,
) {
    let disk = made(ecs, "there").await;
    let unknown = "d-unknown".parse().unwrap();
    let change = disks(&[&disk, &unknown], &[("k", "v")]);
    refused(ecs.tag_resources(soon(), &change).await, Kind::NotFound);
    assert_eq!(seen(ecs, &disk).await.unwrap().tags, Tags::new());
}

pub(crate) async fn too_many_tags_are_invalid(ecs: &dyn Ecs, world: &World) {
    let mut request = essd("tagged");
    request.tags = (0..21).map(|n| (format!("k{n}"), String::new())).collect();
    refused(ecs.create_disk(soon(), &request).await, Kind::Invalid);
    assert_eq!(world.disks(), 0);
}

pub(crate) async fn untagging_removes_the_named_keys_and_no_others(ecs: &dyn Ecs, _: &World) {
    let mut request = essd("tagged");
    request.tags = tags(&[("a", "1"), ("b", "2")]);
    let disk = ecs.create_disk(soon(), &request).await.unwrap();
    let untag = |disk: &DiskId| UntagResources {
        targets: TagTarget::Disks(vec![disk.clone()]),
        keys: vec!["a".to_owned(), "unknown".to_owned()],
    };
    for _ in 0..2 {
        ecs.untag_resources(soon(), &untag(&disk)).await.unwrap();
        assert_eq!(seen(ecs, &disk).await.unwrap().tags, tags(&[("b", "2")]));
    }
    let unknown = untag(&"d-unknown".parse().unwrap());
    refused(ecs.untag_resources(soon(), &unknown).await, Kind::NotFound);
}
