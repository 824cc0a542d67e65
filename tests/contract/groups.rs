//! Snapshot groups are cut at one instant, and go as one.

use std::collections::BTreeSet;

use diskplugin::cloud::{
    CreateSnapshotGroup, DescribeDisks, DescribeSnapshotGroups, DescribeSnapshots, Ecs, Kind,
    TagResources, TagTarget,
};
use diskplugin::model::{
    Category, ClientToken, DiskId, Gib, SnapshotGroup, SnapshotGroupId, SnapshotStatus, Tags,
};
use serde_json::json;

use crate::world::{FAR_ZONE, World, cut, essd, made, refused, seen_snapshot, soon, tags, zone};

on_every_face!(
    a_group_is_cut_at_one_instant_and_described_as_it_was_wanted,
    the_snapshots_of_a_group_name_it_and_carry_none_of_its_tags,
    a_repeated_group_is_the_same_and_its_token_of_other_disks_is_a_mismatch,
    what_cannot_be_cut_together_is_refused,
    a_group_is_found_by_its_tags_and_by_its_id,
    a_deleted_group_takes_its_snapshots_along,
    a_deletion_that_leaves_snapshots_says_so_in_its_success,
    a_group_goes_with_the_last_of_its_snapshots,
    deleting_an_unknown_group_is_success_or_not_found,
    a_list_by_tags_ends_early_and_one_without_them_does_not,
    a_snapshot_is_kept_for_its_days,
    somebody_elses_hold_on_a_snapshot_is_refused_by_its_code,
    a_disk_has_so_many_snapshots_and_so_many_at_once,
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

async fn seen(ecs: &dyn Ecs, id: &SnapshotGroupId) -> Option<SnapshotGroup> {
    let query = DescribeSnapshotGroups {
        ids: Some(vec![id.clone()]),
        ..DescribeSnapshotGroups::default()
    };
    let page = ecs.describe_snapshot_groups(soon(), &query).await.unwrap();
    assert!(page.rows.len() <= 1 && page.next.is_none(), "{page:?}");
    page.rows.into_iter().next()
}

pub(crate) async fn a_group_is_cut_at_one_instant_and_described_as_it_was_wanted(
    ecs: &dyn Ecs,
    world: &World,
) {
    world.configure(json!({"delays": {"cut": "1s..3s", "snapshot": "5s"}}));
    let (one, two) = (made(ecs, "one").await, made(ecs, "two").await);
    let mut wanted = group_of(&[&one, &two], "group");
    wanted.tags = tags(&[("k", "v")]);
    let id = ecs.create_snapshot_group(soon(), &wanted).await.unwrap();
    let row = seen(ecs, &id).await.unwrap();
    assert_eq!(row.tags, wanted.tags);
    assert_eq!(row.status, SnapshotStatus::Progressing);
    let sources: BTreeSet<_> = row
        .members
        .iter()
        .filter_map(|m| m.source.clone())
        .collect();
    assert_eq!(sources, BTreeSet::from([one, two]));
    world.pass(3);
    let mut times = BTreeSet::new();
    for member in &row.members {
        let snapshot = seen_snapshot(ecs, &member.snapshot).await.unwrap();
        assert_eq!(
            (snapshot.group.as_ref(), snapshot.available),
            (Some(&id), true)
        );
        times.insert(snapshot.created);
    }
    assert!(times.len() == 1 && !times.contains(&None), "{times:?}");
    world.pass(2);
    let row = seen(ecs, &id).await.unwrap();
    assert_eq!(row.status, SnapshotStatus::Accomplished);
}

pub(crate) async fn the_snapshots_of_a_group_name_it_and_carry_none_of_its_tags(
    ecs: &dyn Ecs,
    _: &World,
) {
    let disk = made(ecs, "one").await;
    let mut wanted = group_of(&[&disk], "group");
    wanted.tags = tags(&[("k", "v")]);
    let id = ecs.create_snapshot_group(soon(), &wanted).await.unwrap();
    let member = seen(ecs, &id).await.unwrap().members.remove(0);
    let row = seen_snapshot(ecs, &member.snapshot).await.unwrap();
    assert_eq!((row.group, row.tags), (Some(id), Tags::new()));
    let request = TagResources {
        targets: TagTarget::Snapshots(vec![member.snapshot.clone()]),
        tags: wanted.tags.clone(),
    };
    ecs.tag_resources(soon(), &request).await.unwrap();
    let row = seen_snapshot(ecs, &member.snapshot).await.unwrap();
    assert_eq!(row.tags, wanted.tags);
}

pub(crate) async fn a_repeated_group_is_the_same_and_its_token_of_other_disks_is_a_mismatch(
    ecs: &dyn Ecs,
    world: &World,
) {
    let (one, two) = (made(ecs, "one").await, made(ecs, "two").await);
    let wanted = group_of(&[&one, &two], "group");
    let first = ecs.create_snapshot_group(soon(), &wanted).await.unwrap();
    world.pass(60);
    let second = ecs.create_snapshot_group(soon(), &wanted).await.unwrap();
    assert_eq!(first, second);
    let other = group_of(&[&one], "group");
    refused(
        ecs.create_snapshot_group(soon(), &other).await,
        Kind::TokenMismatch,
    );
    assert_eq!(world.snapshots(), 2);
}

pub(crate) async fn what_cannot_be_cut_together_is_refused(ecs: &dyn Ecs, world: &World) {
    let near = made(ecs, "near").await;
    let mut other = essd("far");
    other.zone = Some(zone(FAR_ZONE));
    let far = ecs.create_disk(soon(), &other).await.unwrap();
    let mut other = essd("old");
    other.category = Category::CloudSsd;
    let old = ecs.create_disk(soon(), &other).await.unwrap();
    let mut other = essd("shared");
    other.multi_attach = true;
    let shared = ecs.create_disk(soon(), &other).await.unwrap();
    let mut other = essd("huge");
    other.size = Gib(32 * 1024);
    let huge = ecs.create_disk(soon(), &other).await.unwrap();
    let none: DiskId = "d-none".parse().unwrap();
    for (disk, code) in [
        (&far, "InvalidDiskIds.NotInSameZone"),
        (&old, "InvalidDisk.DiskCategoryInconsistent"),
        (&shared, "InvalidOperation.MultiAttachDisk"),
        (&huge, "CapacityExceed.TooManyDisks"),
        (&none, "InvalidDiskId.NotFound"),
    ] {
        let wanted = group_of(&[&near, disk], code);
        let error = ecs
            .create_snapshot_group(soon(), &wanted)
            .await
            .unwrap_err();
        assert_eq!(error.code(), Some(code));
    }
    let error = ecs
        .create_snapshot_group(soon(), &group_of(&[], "none"))
        .await;
    assert_eq!(
        error.unwrap_err().code(),
        Some("MissingParamter.InstanceId")
    );
    let mut many = Vec::new();
    for n in 0..17 {
        many.push(made(ecs, &format!("many-{n}")).await);
    }
    let all: Vec<_> = many.iter().collect();
    let error = ecs
        .create_snapshot_group(soon(), &group_of(&all, "many"))
        .await;
    assert_eq!(error.unwrap_err().code(), Some("NumberExceed.TooManyDisks"));
    world.configure(json!({"rules": {"never_attached": true}}));
    let error = ecs
        .create_snapshot_group(soon(), &group_of(&[&near], "unused"))
        .await;
    assert_eq!(
        error.unwrap_err().code(),
        Some("IncorrectDiskStatus.NeverAttached")
    );
    assert_eq!(world.snapshots(), 0);
}

pub(crate) async fn a_group_is_found_by_its_tags_and_by_its_id(ecs: &dyn Ecs, _: &World) {
    let disk = made(ecs, "one").await;
    let mut ids = Vec::new();
    for name in ["aa", "bb"] {
        let mut wanted = group_of(&[&disk], name);
        wanted.tags = tags(&[("name", name), ("k", "v")]);
        ids.push(ecs.create_snapshot_group(soon(), &wanted).await.unwrap());
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
        let page = ecs.describe_snapshot_groups(soon(), &query).await.unwrap();
        assert_eq!(page.rows.len(), found, "{query:?}");
    }
    assert_eq!(seen(ecs, &ids[1]).await.unwrap().id, ids[1]);
    assert_eq!(seen(ecs, &"ssg-none".parse().unwrap()).await, None);
}

pub(crate) async fn a_deleted_group_takes_its_snapshots_along(ecs: &dyn Ecs, world: &World) {
    world.configure(json!({"delays": {"cut": "1s", "snapshot": "60s"}}));
    let (one, two) = (made(ecs, "one").await, made(ecs, "two").await);
    for wait in [0, 5] {
        let wanted = group_of(&[&one, &two], &format!("group-{wait}"));
        let id = ecs.create_snapshot_group(soon(), &wanted).await.unwrap();
        world.pass(wait);
        assert_eq!(ecs.delete_snapshot_group(soon(), &id).await.unwrap(), []);
        assert_eq!((seen(ecs, &id).await, world.snapshots()), (None, 0));
    }
}

pub(crate) async fn a_deletion_that_leaves_snapshots_says_so_in_its_success(
    ecs: &dyn Ecs,
    world: &World,
) {
    let (one, two) = (made(ecs, "one").await, made(ecs, "two").await);
    let wanted = group_of(&[&one, &two], "group");
    let id = ecs.create_snapshot_group(soon(), &wanted).await.unwrap();
    let member = seen(ecs, &id).await.unwrap().members[0].snapshot.clone();
    world.configure(json!({"holds": {"images": [member.as_str()]}}));
    let kept = ecs.delete_snapshot_group(soon(), &id).await.unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (kept[0].snapshot.as_str(), kept[0].code.as_str()),
        (member.as_str(), "SnapshotCreatedImage")
    );
    assert_eq!(seen(ecs, &id).await.unwrap().members.len(), 1);
    world.configure(json!({"holds": {"images": []}}));
    assert_eq!(ecs.delete_snapshot_group(soon(), &id).await.unwrap(), []);
    assert_eq!(world.snapshots(), 0);
}

pub(crate) async fn a_group_goes_with_the_last_of_its_snapshots(ecs: &dyn Ecs, _: &World) {
    let (one, two) = (made(ecs, "one").await, made(ecs, "two").await);
    let wanted = group_of(&[&one, &two], "group");
    let id = ecs.create_snapshot_group(soon(), &wanted).await.unwrap();
    let members = seen(ecs, &id).await.unwrap().members;
    ecs.delete_snapshot(soon(), &members[0].snapshot)
        .await
        .unwrap();
    assert_eq!(seen(ecs, &id).await.unwrap().members.len(), 1);
    ecs.delete_snapshot(soon(), &members[1].snapshot)
        .await
        .unwrap();
    assert_eq!(seen(ecs, &id).await, None);
}

pub(crate) async fn deleting_an_unknown_group_is_success_or_not_found(
    ecs: &dyn Ecs,
    world: &World,
) {
    let id = "ssg-unknown".parse().unwrap();
    assert_eq!(ecs.delete_snapshot_group(soon(), &id).await.unwrap(), []);
    world.configure(json!({"rules": {"missing_is_error": true}}));
    let error = ecs.delete_snapshot_group(soon(), &id).await.unwrap_err();
    assert_eq!(error.code(), Some("InvalidSnapshotGroupId.NotFound"));
}

pub(crate) async fn a_list_by_tags_ends_early_and_one_without_them_does_not(
    ecs: &dyn Ecs,
    world: &World,
) {
    world.configure(json!({"rules": {"filtered_rows": 15}}));
    let disk = made(ecs, "source").await;
    for n in 0..20 {
        let mut request = essd(&format!("disk-{n}"));
        request.tags = tags(&[("k", "v")]);
        ecs.create_disk(soon(), &request).await.unwrap();
        let mut request = cut(&disk, &format!("cut-{n}"));
        request.tags = tags(&[("k", "v")]);
        ecs.create_snapshot(soon(), &request).await.unwrap();
    }
    for (filter, disks, snapshots) in [(tags(&[("k", "v")]), 15, 15), (Tags::new(), 21, 20)] {
        let mut query = DescribeDisks {
            tags: filter.clone(),
            page_size: Some(10),
            ..DescribeDisks::default()
        };
        let mut found = 0;
        loop {
            let page = ecs.describe_disks(soon(), &query).await.unwrap();
            found += page.rows.len();
            query.next = page.next;
            if query.next.is_none() {
                break;
            }
        }
        let query = DescribeSnapshots {
            tags: filter,
            ..DescribeSnapshots::default()
        };
        let page = ecs.describe_snapshots(soon(), &query).await.unwrap();
        assert_eq!(
            (found, page.rows.len(), page.next),
            (disks, snapshots, None)
        );
    }
}

pub(crate) async fn a_snapshot_is_kept_for_its_days(ecs: &dyn Ecs, world: &World) {
    let disk = made(ecs, "source").await;
    let mut request = cut(&disk, "kept");
    request.retention_days = Some(1);
    let id = ecs.create_snapshot(soon(), &request).await.unwrap();
    world.pass(24 * 3600 - 1);
    assert!(seen_snapshot(ecs, &id).await.is_some());
    world.pass(1);
    assert_eq!(seen_snapshot(ecs, &id).await, None);
    for days in [0, 65537] {
        request.retention_days = Some(days);
        request.token = ClientToken::derive("CreateSnapshot", [days.to_string().as_str()]);
        let error = ecs.create_snapshot(soon(), &request).await.unwrap_err();
        assert_eq!(error.code(), Some("InvalidRetentionDays.Malformed"));
    }
}

pub(crate) async fn somebody_elses_hold_on_a_snapshot_is_refused_by_its_code(
    ecs: &dyn Ecs,
    world: &World,
) {
    let disk = made(ecs, "source").await;
    let id = ecs
        .create_snapshot(soon(), &cut(&disk, "one"))
        .await
        .unwrap();
    for (hold, code) in [
        ("images", "SnapshotCreatedImage"),
        ("locked", "InvalidOperation.SnapshotIsLocked"),
    ] {
        world.configure(json!({"holds": {hold: [id.as_str()]}}));
        let error = ecs.delete_snapshot(soon(), &id).await.unwrap_err();
        assert_eq!(error.code(), Some(code));
        world.configure(json!({"holds": null}));
    }
    world.configure(json!({"holds": {"archived": [id.as_str()]}}));
    let mut restored = essd("restored");
    restored.snapshot = Some(id.clone());
    let error = ecs.create_disk(soon(), &restored).await.unwrap_err();
    assert_eq!(error.code(), Some("InvalidSnapshotId.NotReady"));
    ecs.delete_snapshot(soon(), &id).await.unwrap();
}

pub(crate) async fn a_disk_has_so_many_snapshots_and_so_many_at_once(ecs: &dyn Ecs, world: &World) {
    world.configure(json!({"delays": {"snapshot": "60s"}, "rules": {"alternatives": "first"}}));
    let disk = made(ecs, "source").await;
    let take = async |n: usize| {
        ecs.create_snapshot(soon(), &cut(&disk, &format!("cut-{n}")))
            .await
    };
    for n in 0..10 {
        take(n).await.unwrap();
    }
    let error = take(10).await.unwrap_err();
    assert_eq!(error.code(), Some("QuotaExceed.ConcurrentSnapshotQuota"));
    assert_eq!(error.kind(), Kind::Conflict);
    world.pass(60);
    world.configure(json!({"delays": {"snapshot": "0s"}}));
    for n in 10..256 {
        take(n).await.unwrap();
    }
    let error = take(256).await.unwrap_err();
    assert_eq!(error.code(), Some("QuotaExceed.SnapshotQuota"));
}
