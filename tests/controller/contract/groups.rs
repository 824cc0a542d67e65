//! Snapshot groups have one point in time and are deleted as a unit.

use ecs::{CreateSnapshotGroup, DescribeSnapshotGroups};

use diskplugin::model::{SnapshotGroup, SnapshotGroupId};

use crate::contract::world::*;

over_every_connection!(
    a_group_is_cut_at_one_instant_and_described_as_it_was_wanted,
    the_snapshots_of_a_group_name_it_and_carry_none_of_its_tags,
    a_repeated_group_is_the_same_and_its_token_of_other_disks_is_a_mismatch,
    disks_that_cannot_form_a_group_are_rejected,
    a_group_is_listed_by_tags_and_by_id,
    deleting_a_group_deletes_its_snapshots,
    a_deletion_that_leaves_snapshots_says_so_in_its_success,
    a_group_is_deleted_with_its_last_snapshot,
    deleting_an_unknown_group_is_success_or_not_found,
);

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

async fn described(ecs: &Client, id: &SnapshotGroupId) -> Option<SnapshotGroup> {
    let query = DescribeSnapshotGroups {
        ids: Some(vec![id.clone()]),
        ..DescribeSnapshotGroups::default()
    };
    let page = ecs.describe_snapshot_groups(deadline(), &query).await.unwrap();
    assert!(page.rows.len() <= 1 && page.next.is_none(), "{page:?}");
    page.rows.into_iter().next()
}

pub(crate) async fn a_group_is_cut_at_one_instant_and_described_as_it_was_wanted(ecs: &Client, world: &World) {
    world.configure(json!({"delays": {"cut": "1s..3s", "snapshot": "5s"}}));
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    let mut wanted = group_of(&[&one, &two], "group");
    wanted.tags = tags(&[("k", "v")]);
    let id = create_group(ecs, &wanted).await.unwrap();
    let row = described(ecs, &id).await.unwrap();
    assert_eq!(row.tags, wanted.tags);
    assert_eq!(row.status, SnapshotStatus::Progressing);
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
}

pub(crate) async fn the_snapshots_of_a_group_name_it_and_carry_none_of_its_tags(ecs: &Client, _: &World) {
    let disk = create_essd(ecs, "one").await;
    let mut wanted = group_of(&[&disk], "group");
    wanted.tags = tags(&[("k", "v")]);
    let id = create_group(ecs, &wanted).await.unwrap();
    let member = described(ecs, &id).await.unwrap().members.remove(0);
    let row = described_snapshot(ecs, &member.snapshot).await.unwrap();
    assert_eq!((row.group, row.tags), (Some(id), Tags::new()));
    let request = TagResources {
        targets: TagTarget::Snapshots(vec![member.snapshot.clone()]),
        tags: wanted.tags.clone(),
    };
    ecs.tag_resources(deadline(), &request).await.unwrap();
    let row = described_snapshot(ecs, &member.snapshot).await.unwrap();
    assert_eq!(row.tags, wanted.tags);
}

pub(crate) async fn a_repeated_group_is_the_same_and_its_token_of_other_disks_is_a_mismatch(
    ecs: &Client,
    world: &World,
) {
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    let wanted = group_of(&[&one, &two], "group");
    let first = create_group(ecs, &wanted).await.unwrap();
    world.pass(60);
    let second = create_group(ecs, &wanted).await.unwrap();
    assert_eq!(first, second);
    let other = group_of(&[&one], "group");
    expect_error(create_group(ecs, &other).await, Kind::TokenMismatch);
    assert_eq!(world.snapshots(), 2);
}

pub(crate) async fn disks_that_cannot_form_a_group_are_rejected(ecs: &Client, world: &World) {
    let near = create_essd(ecs, "near").await;
    let mut other = essd("far");
    other.zone = Some(zone(FAR_ZONE));
    let far = create(ecs, &other).await.unwrap();
    let mut other = essd("old");
    other.category = Category::CloudSsd;
    let old = create(ecs, &other).await.unwrap();
    let mut other = essd("shared");
    other.multi_attach = true;
    let shared = create(ecs, &other).await.unwrap();
    let mut other = essd("huge");
    other.size = Gib(32 * 1024);
    let huge = create(ecs, &other).await.unwrap();
    let none: DiskId = "d-none".parse().unwrap();
    for (disk, code) in [
        (&far, "InvalidDiskIds.NotInSameZone"),
        (&old, "InvalidDisk.DiskCategoryInconsistent"),
        (&shared, "InvalidOperation.MultiAttachDisk"),
        (&huge, "CapacityExceed.TooManyDisks"),
        (&none, "InvalidDiskId.NotFound"),
    ] {
        let wanted = group_of(&[&near, disk], code);
        let error = create_group(ecs, &wanted).await.unwrap_err();
        assert_eq!(error.code(), Some(code));
    }
    assert_eq!(
        create_group(ecs, &group_of(&[], "none")).await.unwrap_err().code(),
        Some("MissingParamter.InstanceId")
    );
    let mut many = Vec::new();
    for n in 0..17 {
        many.push(create_essd(ecs, &format!("many-{n}")).await);
    }
    let all: Vec<_> = many.iter().collect();
    assert_eq!(
        create_group(ecs, &group_of(&all, "many")).await.unwrap_err().code(),
        Some("NumberExceed.TooManyDisks")
    );
    world.configure(json!({"rules": {"never_attached": true}}));
    assert_eq!(
        create_group(ecs, &group_of(&[&near], "unused"))
            .await
            .unwrap_err()
            .code(),
        Some("IncorrectDiskStatus.NeverAttached")
    );
    assert_eq!(world.snapshots(), 0);
}

pub(crate) async fn a_group_is_listed_by_tags_and_by_id(ecs: &Client, _: &World) {
    let disk = create_essd(ecs, "one").await;
    let mut ids = Vec::new();
    for name in ["aa", "bb"] {
        let mut wanted = group_of(&[&disk], name);
        wanted.tags = tags(&[("name", name), ("k", "v")]);
        ids.push(create_group(ecs, &wanted).await.unwrap());
    }
    let by = |pairs: &[(&str, &str)]| DescribeSnapshotGroups {
        tags: tags(pairs),
        ..DescribeSnapshotGroups::default()
    };
    for (query, found) in [
        (by(&[("k", "v")]), 2),
        (by(&[("k", "v"), ("name", "aa")]), 1),
        (by(&[("k", "other")]), 0),
        (DescribeSnapshotGroups::default(), 2),
    ] {
        let page = ecs.describe_snapshot_groups(deadline(), &query).await.unwrap();
        assert_eq!(page.rows.len(), found, "{query:?}");
    }
    assert_eq!(described(ecs, &ids[1]).await.unwrap().id, ids[1]);
    assert_eq!(described(ecs, &"ssg-none".parse().unwrap()).await, None);
}

pub(crate) async fn deleting_a_group_deletes_its_snapshots(ecs: &Client, world: &World) {
    world.configure(json!({"delays": {"cut": "1s", "snapshot": "60s"}}));
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    for wait in [0, 5] {
        let wanted = group_of(&[&one, &two], &format!("group-{wait}"));
        let id = create_group(ecs, &wanted).await.unwrap();
        world.pass(wait);
        assert_eq!(ecs.delete_snapshot_group(deadline(), &id).await.unwrap(), []);
        assert_eq!((described(ecs, &id).await, world.snapshots()), (None, 0));
    }
}

pub(crate) async fn a_deletion_that_leaves_snapshots_says_so_in_its_success(ecs: &Client, world: &World) {
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    let wanted = group_of(&[&one, &two], "group");
    let id = create_group(ecs, &wanted).await.unwrap();
    let member = described(ecs, &id).await.unwrap().members[0].snapshot.clone();
    world.configure(json!({"holds": {"images": [member.as_str()]}}));
    let kept = ecs.delete_snapshot_group(deadline(), &id).await.unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (kept[0].snapshot.as_str(), kept[0].code.as_str()),
        (member.as_str(), "SnapshotCreatedImage")
    );
    assert_eq!(described(ecs, &id).await.unwrap().members.len(), 1);
    world.configure(json!({"holds": {"images": []}}));
    assert_eq!(ecs.delete_snapshot_group(deadline(), &id).await.unwrap(), []);
    assert_eq!(world.snapshots(), 0);
}

pub(crate) async fn a_group_is_deleted_with_its_last_snapshot(ecs: &Client, _: &World) {
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    let wanted = group_of(&[&one, &two], "group");
    let id = create_group(ecs, &wanted).await.unwrap();
    let members = described(ecs, &id).await.unwrap().members;
    ecs.delete_snapshot(deadline(), &members[0].snapshot).await.unwrap();
    assert_eq!(described(ecs, &id).await.unwrap().members.len(), 1);
    ecs.delete_snapshot(deadline(), &members[1].snapshot).await.unwrap();
    assert_eq!(described(ecs, &id).await, None);
}

pub(crate) async fn deleting_an_unknown_group_is_success_or_not_found(ecs: &Client, world: &World) {
    let id = "ssg-unknown".parse().unwrap();
    assert_eq!(ecs.delete_snapshot_group(deadline(), &id).await.unwrap(), []);
    world.configure(json!({"rules": {"missing_is_error": true}}));
    let error = ecs.delete_snapshot_group(deadline(), &id).await.unwrap_err();
    assert_eq!(error.code(), Some("InvalidSnapshotGroupId.NotFound"));
}
