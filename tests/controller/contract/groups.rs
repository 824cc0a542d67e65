//! Snapshot groups have one point in time and are deleted as a unit.

use ecs::{CreateSnapshotGroup, DescribeSnapshotGroups};

use diskplugin::model::{SnapshotGroup, SnapshotGroupId};

use crate::contract::world::*;

fn group_of(disks: &[&DiskId], name: &str) -> CreateSnapshotGroup {
    CreateSnapshotGroup {
        disks: disks.iter().map(|id| (*id).clone()).collect(),
        name: name.to_owned(),
        resource_group: None,
        tags: Tags::new(),
        token: ClientToken::derive("CreateSnapshotGroup", [name]),
    }
}

async fn create_group(ecs: &Client, request: &CreateSnapshotGroup) -> Result<SnapshotGroupId> {
    ecs.create_snapshot_group(deadline(), request).await
}

/// A group of two new disks.
async fn group_of_two(ecs: &Client) -> SnapshotGroupId {
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    create_group(ecs, &group_of(&[&one, &two], "group")).await.unwrap()
}

async fn described(ecs: &Client, id: &SnapshotGroupId) -> Option<SnapshotGroup> {
    let query = DescribeSnapshotGroups {
        ids: Some(vec![id.clone()]),
        ..DescribeSnapshotGroups::default()
    };
    let page = ecs.describe_snapshot_groups(deadline(), &query).await.unwrap();
    assert!(page.rows.len() <= 1 && page.next.is_none(), "{page:?}");
    page.rows.into_iter().next()
}

contract!(all_snapshots_of_a_group_are_cut_at_one_instant, |ecs, world| {
    world.configure(json!({"delays": {"cut": "1s..3s", "snapshot": "5s"}}));
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    let mut wanted = group_of(&[&one, &two], "group");
    wanted.tags = tags(&[("k", "v")]);
    let id = create_group(ecs, &wanted).await.unwrap();
    let row = described(ecs, &id).await.unwrap();
    assert_eq!((row.tags, row.status), (wanted.tags, SnapshotStatus::Progressing));
    let sources: BTreeSet<_> = row.members.iter().filter_map(|m| m.source.clone()).collect();
    assert_eq!(sources, BTreeSet::from([one, two]));
    world.pass(3);
    let mut times = BTreeSet::new();
    for member in &row.members {
        let snapshot = described_snapshot(ecs, &member.snapshot).await.unwrap();
        assert_eq!((snapshot.group.as_ref(), snapshot.available), (Some(&id), true));
        times.insert(snapshot.created);
    }
    assert!(times.len() == 1 && !times.contains(&None), "{times:?}");
    world.pass(2);
    let row = described(ecs, &id).await.unwrap();
    assert_eq!(row.status, SnapshotStatus::Accomplished);
});

contract!(the_snapshots_of_a_group_have_its_id_but_not_its_tags, |ecs, _| {
    let disk = create_essd(ecs, "one").await;
    let mut wanted = group_of(&[&disk], "group");
    wanted.tags = tags(&[("k", "v")]);
    let id = create_group(ecs, &wanted).await.unwrap();
    let member = described(ecs, &id).await.unwrap().members.remove(0).snapshot;
    let row = described_snapshot(ecs, &member).await.unwrap();
    assert_eq!((row.group, row.tags), (Some(id), Tags::new()));
    let request = TagResources {
        targets: TagTarget::Snapshots(vec![member.clone()]),
        tags: wanted.tags.clone(),
    };
    ecs.tag_resources(deadline(), &request).await.unwrap();
    assert_eq!(described_snapshot(ecs, &member).await.unwrap().tags, wanted.tags);
});

contract!(a_create_is_repeated_and_other_disks_are_a_mismatch, |ecs, world| {
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    let wanted = group_of(&[&one, &two], "group");
    let first = create_group(ecs, &wanted).await.unwrap();
    world.pass(60);
    assert_eq!(create_group(ecs, &wanted).await.unwrap(), first);
    let other = group_of(&[&one], "group");
    expect_error(create_group(ecs, &other).await, Kind::TokenMismatch);
    assert_eq!(world.snapshots(), 2);
});

contract!(disks_that_cannot_form_a_group_are_rejected, |ecs, world| {
    let near = create_essd(ecs, "near").await;
    let other = async |name: &str, change: fn(&mut CreateDisk)| create(ecs, &essd_with(name, change)).await.unwrap();
    let rejected = async |disks: &[&DiskId], name: &str| code(create_group(ecs, &group_of(disks, name)).await);
    for (disk, expected) in [
        (
            other("far", |disk| disk.zone = Some(zone(FAR_ZONE))).await,
            "InvalidDiskIds.NotInSameZone",
        ),
        (
            other("old", |disk| disk.category = Category::CloudSsd).await,
            "InvalidDisk.DiskCategoryInconsistent",
        ),
        (
            other("shared", |disk| disk.multi_attach = true).await,
            "InvalidOperation.MultiAttachDisk",
        ),
        (
            other("huge", |disk| disk.size = Gib(32 * 1024)).await,
            "CapacityExceed.TooManyDisks",
        ),
        ("d-none".parse().unwrap(), "InvalidDiskId.NotFound"),
    ] {
        assert_eq!(rejected(&[&near, &disk], expected).await, expected);
    }
    assert_eq!(rejected(&[], "none").await, "MissingParamter.InstanceId");
    let mut many = Vec::new();
    for n in 0..17 {
        many.push(create_essd(ecs, &format!("many-{n}")).await);
    }
    let all: Vec<_> = many.iter().collect();
    assert_eq!(rejected(&all, "many").await, "NumberExceed.TooManyDisks");
    world.configure(json!({"rules": {"never_attached": true}}));
    assert_eq!(rejected(&[&near], "unused").await, "IncorrectDiskStatus.NeverAttached");
    assert_eq!(world.snapshots(), 0);
});

contract!(a_group_is_listed_by_tags_and_by_id, |ecs, _| {
    let disk = create_essd(ecs, "one").await;
    let mut ids = Vec::new();
    for name in ["aa", "bb"] {
        let mut wanted = group_of(&[&disk], name);
        wanted.tags = tags(&[("name", name), ("k", "v")]);
        ids.push(create_group(ecs, &wanted).await.unwrap());
    }
    let all = [("k", "v"), ("name", "aa")];
    for (pairs, found) in [(&all[..1], 2), (&all, 1), (&[("k", "other")], 0), (&[], 2)] {
        let query = DescribeSnapshotGroups {
            tags: tags(pairs),
            ..DescribeSnapshotGroups::default()
        };
        let page = ecs.describe_snapshot_groups(deadline(), &query).await.unwrap();
        assert_eq!(page.rows.len(), found, "{query:?}");
    }
    assert_eq!(described(ecs, &ids[1]).await.unwrap().id, ids[1]);
    assert_eq!(described(ecs, &"ssg-none".parse().unwrap()).await, None);
});

contract!(deleting_a_group_deletes_its_snapshots, |ecs, world| {
    world.configure(json!({"delays": {"cut": "1s", "snapshot": "60s"}}));
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    for wait in [0, 5] {
        let wanted = group_of(&[&one, &two], &format!("group-{wait}"));
        let id = create_group(ecs, &wanted).await.unwrap();
        world.pass(wait);
        assert_eq!(ecs.delete_snapshot_group(deadline(), &id).await.unwrap(), []);
        assert_eq!((described(ecs, &id).await, world.snapshots()), (None, 0));
    }
});

contract!(a_deletion_returns_the_snapshots_that_it_keeps, |ecs, world| {
    let id = group_of_two(ecs).await;
    let member = described(ecs, &id).await.unwrap().members[0].snapshot.clone();
    world.configure(json!({"holds": {"images": [member.as_str()]}}));
    let kept = ecs.delete_snapshot_group(deadline(), &id).await.unwrap();
    assert_eq!(kept.len(), 1);
    let first = (kept[0].snapshot.as_str(), kept[0].code.as_str());
    assert_eq!(first, (member.as_str(), "SnapshotCreatedImage"));
    assert_eq!(described(ecs, &id).await.unwrap().members.len(), 1);
    world.configure(json!({"holds": {"images": []}}));
    assert_eq!(ecs.delete_snapshot_group(deadline(), &id).await.unwrap(), []);
    assert_eq!(world.snapshots(), 0);
});

contract!(a_group_is_deleted_with_its_last_snapshot, |ecs, _| {
    let id = group_of_two(ecs).await;
    let members = described(ecs, &id).await.unwrap().members;
    ecs.delete_snapshot(deadline(), &members[0].snapshot).await.unwrap();
    assert_eq!(described(ecs, &id).await.unwrap().members.len(), 1);
    ecs.delete_snapshot(deadline(), &members[1].snapshot).await.unwrap();
    assert_eq!(described(ecs, &id).await, None);
});
