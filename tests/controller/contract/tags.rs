//! Tags of disks and snapshots.

use ecs::UntagResources;

use crate::contract::world::*;

over_every_connection!(
    a_tag_filter_requires_all_its_tags,
    a_snapshot_is_listed_by_its_tags,
    tagging_adds_and_overwrites,
    snapshots_can_be_tagged,
    tagging_what_is_not_there_is_not_found_and_changes_nothing,
    too_many_tags_are_invalid,
    untagging_removes_the_named_keys_and_no_others,
);

async fn found(ecs: &Client, wanted: &[(&str, &str)]) -> Vec<DiskId> {
    let query = DescribeDisks {
        tags: tags(wanted),
        ..DescribeDisks::default()
    };
    let page = ecs.describe_disks(deadline(), &query).await.unwrap();
    page.rows.into_iter().map(|row| row.id).collect()
}

fn disks(ids: &[&DiskId], set: &[(&str, &str)]) -> TagResources {
    TagResources {
        targets: TagTarget::Disks(ids.iter().map(|id| (*id).clone()).collect()),
        tags: tags(set),
    }
}

pub(crate) async fn a_tag_filter_requires_all_its_tags(ecs: &Client, _: &World) {
    let mut request = essd("tagged");
    request.tags = tags(&[("a", "1"), ("b", ""), ("c/d", "x y&z")]);
    let disk = create(ecs, &request).await.unwrap();
    create_essd(ecs, "plain").await;
    assert_eq!(found(ecs, &[("a", "1")]).await, std::slice::from_ref(&disk));
    let all = [("a", "1"), ("b", ""), ("c/d", "x y&z")];
    assert_eq!(found(ecs, &all).await, [disk]);
    assert_eq!(found(ecs, &[("a", "1"), ("b", "2")]).await, []);
    assert_eq!(found(ecs, &[("A", "1")]).await, []);
}

pub(crate) async fn a_snapshot_is_listed_by_its_tags(ecs: &Client, _: &World) {
    let disk = create_essd(ecs, "source").await;
    let mut request = snapshot_of(&disk, "tagged");
    request.tags = tags(&[("a", "1")]);
    let id = snapshot(ecs, &request).await.unwrap();
    snapshot(ecs, &snapshot_of(&disk, "plain")).await.unwrap();
    let query = DescribeSnapshots {
        tags: request.tags,
        ..DescribeSnapshots::default()
    };
    let page = ecs.describe_snapshots(deadline(), &query).await.unwrap();
    let ids: Vec<_> = page.rows.into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [id]);
}

pub(crate) async fn tagging_adds_and_overwrites(ecs: &Client, _: &World) {
    let mut request = essd("tagged");
    request.tags = tags(&[("a", "1"), ("b", "1")]);
    let one = create(ecs, &request).await.unwrap();
    let two = create_essd(ecs, "plain").await;
    let change = disks(&[&one, &two], &[("b", "2"), ("c", "2")]);
    ecs.tag_resources(deadline(), &change).await.unwrap();
    let row = described(ecs, &one).await.unwrap();
    assert_eq!(row.tags, tags(&[("a", "1"), ("b", "2"), ("c", "2")]));
    let row = described(ecs, &two).await.unwrap();
    assert_eq!(row.tags, tags(&[("b", "2"), ("c", "2")]));
}

pub(crate) async fn snapshots_can_be_tagged(ecs: &Client, _: &World) {
    let disk = create_essd(ecs, "source").await;
    let id = snapshot(ecs, &snapshot_of(&disk, "one")).await.unwrap();
    let change = TagResources {
        targets: TagTarget::Snapshots(vec![id.clone()]),
        tags: tags(&[("k", "v")]),
    };
    ecs.tag_resources(deadline(), &change).await.unwrap();
    assert_eq!(described_snapshot(ecs, &id).await.unwrap().tags, change.tags);
}

pub(crate) async fn tagging_what_is_not_there_is_not_found_and_changes_nothing(ecs: &Client, _: &World) {
    let disk = create_essd(ecs, "there").await;
    let unknown = "d-unknown".parse().unwrap();
    let change = disks(&[&disk, &unknown], &[("k", "v")]);
    expect_error(ecs.tag_resources(deadline(), &change).await, Kind::NotFound);
    assert_eq!(described(ecs, &disk).await.unwrap().tags, Tags::new());
}

pub(crate) async fn too_many_tags_are_invalid(ecs: &Client, world: &World) {
    let mut request = essd("tagged");
    request.tags = (0..21).map(|n| (format!("k{n}"), String::new())).collect();
    expect_error(create(ecs, &request).await, Kind::Invalid);
    assert_eq!(world.disks(), 0);
}

pub(crate) async fn untagging_removes_the_named_keys_and_no_others(ecs: &Client, _: &World) {
    let mut request = essd("tagged");
    request.tags = tags(&[("a", "1"), ("b", "2")]);
    let disk = create(ecs, &request).await.unwrap();
    let untag = |disk: &DiskId| UntagResources {
        targets: TagTarget::Disks(vec![disk.clone()]),
        keys: vec!["a".to_owned(), "unknown".to_owned()],
    };
    for _ in 0..2 {
        ecs.untag_resources(deadline(), &untag(&disk)).await.unwrap();
        assert_eq!(described(ecs, &disk).await.unwrap().tags, tags(&[("b", "2")]));
    }
    let unknown = untag(&"d-unknown".parse().unwrap());
    expect_error(ecs.untag_resources(deadline(), &unknown).await, Kind::NotFound);
}
