//! Snapshot groups have one point in time and are deleted as a unit.

use std::collections::BTreeSet;

use diskplugin::cloud::{
    CreateSnapshotGroup, DescribeDisks, DescribeSnapshotGroups, DescribeSnapshots, EcsApi, Kind,
    TagResources, TagTarget,
};
use diskplugin::model::{
    Category, ClientToken, DiskId, Gib, SnapshotGroup, SnapshotGroupId, SnapshotStatus, Tags,
};
use serde_json::json;

use crate::world::{
    FAR_ZONE, World, create_essd, deadline, described_snapshot, essd, expect_error, snapshot_of,
    tags, zone,
};

on_every_implementation!(
    a_group_is_cut_at_one_instant_and_described_as_it_was_wanted,
    the_snapshots_of_a_group_name_it_and_carry_none_of_its_tags,
    a_repeated_group_is_the_same_and_its_token_of_other_disks_is_a_mismatch,
    disks_that_cannot_form_a_group_are_rejected,
    a_group_is_listed_by_tags_and_by_id,
    deleting_a_group_deletes_its_snapshots,
    a_deletion_that_leaves_snapshots_says_so_in_its_success,
    a_group_is_deleted_with_its_last_snapshot,
    deleting_an_unknown_group_is_success_or_not_found,
    a_list_by_tags_ends_early_and_one_without_them_does_not,
    a_snapshot_expires_after_its_retention_days,
    somebody_elses_hold_on_a_snapshot_is_refused_by_its_code,
    snapshots_per_disk_and_in_progress_are_limited,
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

async fn described(ecs: &dyn EcsApi, id: &SnapshotGroupId) -> Option<SnapshotGroup> {
    let query = DescribeSnapshotGroups {
        ids: Some(vec![id.clone()]),
        ..DescribeSnapshotGroups::default()
    };
    let page = ecs
        .describe_snapshot_groups(deadline(), &query)
        .await
        .unwrap();
    assert!(page.rows.len() <= 1 && page.next.is_none(), "{page:?}");
    page.rows.into_iter().next()
}

pub(crate) async fn a_group_is_cut_at_one_instant_and_described_as_it_was_wanted(
    ecs: &dyn EcsApi,
    world: &World,
) {
    world.configure(json!({"delays": {"cut": "1s..3s", "snapshot": "5s"}}));
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    let mut wanted = group_of(&[&one, &two], "group");
    wanted.tags = tags(&[("k", "v")]);
    let id = ecs
        .create_snapshot_group(deadline(), &wanted)
        .await
        .unwrap();
    let row = described(ecs, &id).await.unwrap();
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
        let snapshot = described_snapshot(ecs, &member.snapshot).await.unwrap();
        assert_eq!(
            (snapshot.group.as_ref(), snapshot.available),
            (Some(&id), true)
        );
        times.insert(snapshot.created);
    }
    assert!(times.len() == 1 && !times.contains(&None), "{times:?}");
    world.pass(2);
    let row = described(ecs, &id).await.unwrap();
    assert_eq!(row.status, SnapshotStatus::Accomplished);
}

pub(crate) async fn the_snapshots_of_a_group_name_it_and_carry_none_of_its_tags(
    ecs: &dyn EcsApi,
    _: &World,
) {
    let disk = create_essd(ecs, "one").await;
    let mut wanted = group_of(&[&disk], "group");
    wanted.tags = tags(&[("k", "v")]);
    let id = ecs
        .create_snapshot_group(deadline(), &wanted)
        .await
        .unwrap();
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
    ecs: &dyn EcsApi,
    world: &World,
) {
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    let wanted = group_of(&[&one, &two], "group");
    let first = ecs
        .create_snapshot_group(deadline(), &wanted)
        .await
        .unwrap();
    world.pass(60);
    let second = ecs
        .create_snapshot_group(deadline(), &wanted)
        .await
        .unwrap();
    assert_eq!(first, second);
    let other = group_of(&[&one], "group");
    expect_error(
        ecs.create_snapshot_group(deadline(), &other).await,
        Kind::TokenMismatch,
    );
    assert_eq!(world.snapshots(), 2);
}

pub(crate) async fn disks_that_cannot_form_a_group_are_rejected(ecs: &dyn EcsApi, world: &World) {
    let near = create_essd(ecs, "near").await;
    let mut other = essd("far");
    other.zone = Some(zone(FAR_ZONE));
    let far = ecs.create_disk(deadline(), &other).await.unwrap();
    let mut other = essd("old");
    other.category = Category::CloudSsd;
    let old = ecs.create_disk(deadline(), &other).await.unwrap();
    let mut other = essd("shared");
    other.multi_attach = true;
    let shared = ecs.create_disk(deadline(), &other).await.unwrap();
    let mut other = essd("huge");
    other.size = Gib(32 * 1024);
    let huge = ecs.create_disk(deadline(), &other).await.unwrap();
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
            .create_snapshot_group(deadline(), &wanted)
            .await
            .unwrap_err();
        assert_eq!(error.code(), Some(code));
    }
    let error = ecs
        .create_snapshot_group(deadline(), &group_of(&[], "none"))
        .await;
    assert_eq!(
        error.unwrap_err().code(),
        Some("MissingParamter.InstanceId")
    );
    let mut many = Vec::new();
    for n in 0..17 {
        many.push(create_essd(ecs, &format!("many-{n}")).await);
    }
    let all: Vec<_> = many.iter().collect();
    let error = ecs
        .create_snapshot_group(deadline(), &group_of(&all, "many"))
        .await;
    assert_eq!(error.unwrap_err().code(), Some("NumberExceed.TooManyDisks"));
    world.configure(json!({"rules": {"never_attached": true}}));
    let error = ecs
        .create_snapshot_group(deadline(), &group_of(&[&near], "unused"))
        .await;
    assert_eq!(
        error.unwrap_err().code(),
        Some("IncorrectDiskStatus.NeverAttached")
    );
    assert_eq!(world.snapshots(), 0);
}

pub(crate) async fn a_group_is_listed_by_tags_and_by_id(ecs: &dyn EcsApi, _: &World) {
    let disk = create_essd(ecs, "one").await;
    let mut ids = Vec::new();
    for name in ["aa", "bb"] {
        let mut wanted = group_of(&[&disk], name);
        wanted.tags = tags(&[("name", name), ("k", "v")]);
        ids.push(
            ecs.create_snapshot_group(deadline(), &wanted)
                .await
                .unwrap(),
        );
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
        let page = ecs
            .describe_snapshot_groups(deadline(), &query)
            .await
            .unwrap();
        assert_eq!(page.rows.len(), found, "{query:?}");
    }
    assert_eq!(described(ecs, &ids[1]).await.unwrap().id, ids[1]);
    assert_eq!(described(ecs, &"ssg-none".parse().unwrap()).await, None);
}

pub(crate) async fn deleting_a_group_deletes_its_snapshots(ecs: &dyn EcsApi, world: &World) {
    world.configure(json!({"delays": {"cut": "1s", "snapshot": "60s"}}));
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    for wait in [0, 5] {
        let wanted = group_of(&[&one, &two], &format!("group-{wait}"));
        let id = ecs
            .create_snapshot_group(deadline(), &wanted)
            .await
            .unwrap();
        world.pass(wait);
        assert_eq!(
            ecs.delete_snapshot_group(deadline(), &id).await.unwrap(),
            []
        );
        assert_eq!((described(ecs, &id).await, world.snapshots()), (None, 0));
    }
}

pub(crate) async fn a_deletion_that_leaves_snapshots_says_so_in_its_success(
    ecs: &dyn EcsApi,
    world: &World,
) {
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    let wanted = group_of(&[&one, &two], "group");
    let id = ecs
        .create_snapshot_group(deadline(), &wanted)
        .await
        .unwrap();
    let member = described(ecs, &id).await.unwrap().members[0]
        .snapshot
        .clone();
    world.configure(json!({"holds": {"images": [member.as_str()]}}));
    let kept = ecs.delete_snapshot_group(deadline(), &id).await.unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (kept[0].snapshot.as_str(), kept[0].code.as_str()),
        (member.as_str(), "SnapshotCreatedImage")
    );
    assert_eq!(described(ecs, &id).await.unwrap().members.len(), 1);
    world.configure(json!({"holds": {"images": []}}));
    assert_eq!(
        ecs.delete_snapshot_group(deadline(), &id).await.unwrap(),
        []
    );
    assert_eq!(world.snapshots(), 0);
}

pub(crate) async fn a_group_is_deleted_with_its_last_snapshot(ecs: &dyn EcsApi, _: &World) {
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    let wanted = group_of(&[&one, &two], "group");
    let id = ecs
        .create_snapshot_group(deadline(), &wanted)
        .await
        .unwrap();
    let members = described(ecs, &id).await.unwrap().members;
    ecs.delete_snapshot(deadline(), &members[0].snapshot)
        .await
        .unwrap();
    assert_eq!(described(ecs, &id).await.unwrap().members.len(), 1);
    ecs.delete_snapshot(deadline(), &members[1].snapshot)
        .await
        .unwrap();
    assert_eq!(described(ecs, &id).await, None);
}

pub(crate) async fn deleting_an_unknown_group_is_success_or_not_found(
    ecs: &dyn EcsApi,
    world: &World,
) {
    let id = "ssg-unknown".parse().unwrap();
    assert_eq!(
        ecs.delete_snapshot_group(deadline(), &id).await.unwrap(),
        []
    );
    world.configure(json!({"rules": {"missing_is_error": true}}));
    let error = ecs
        .delete_snapshot_group(deadline(), &id)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("InvalidSnapshotGroupId.NotFound"));
}

pub(crate) async fn a_list_by_tags_ends_early_and_one_without_them_does_not(
    ecs: &dyn EcsApi,
    world: &World,
) {
    world.configure(json!({"rules": {"filtered_rows": 15}}));
    let disk = create_essd(ecs, "source").await;
    for n in 0..20 {
        let mut request = essd(&format!("disk-{n}"));
        request.tags = tags(&[("k", "v")]);
        ecs.create_disk(deadline(), &request).await.unwrap();
        let mut request = snapshot_of(&disk, &format!("cut-{n}"));
        request.tags = tags(&[("k", "v")]);
        ecs.create_snapshot(deadline(), &request).await.unwrap();
    }
    for (filter, disks, snapshots) in [(tags(&[("k", "v")]), 15, 15), (Tags::new(), 21, 20)] {
        let mut query = DescribeDisks {
            tags: filter.clone(),
            page_size: Some(10),
            ..DescribeDisks::default()
        };
        let mut found = 0;
        loop {
            let page = ecs.describe_disks(deadline(), &query).await.unwrap();
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
        let page = ecs.describe_snapshots(deadline(), &query).await.unwrap();
        assert_eq!(
            (found, page.rows.len(), page.next),
            (disks, snapshots, None)
        );
    }
}

pub(crate) async fn a_snapshot_expires_after_its_retention_days(ecs: &dyn EcsApi, world: &World) {
    let disk = create_essd(ecs, "source").await;
    let mut request = snapshot_of(&disk, "kept");
    request.retention_days = Some(1);
    let id = ecs.create_snapshot(deadline(), &request).await.unwrap();
    world.pass(24 * 3600 - 1);
    assert!(described_snapshot(ecs, &id).await.is_some());
    world.pass(1);
    assert_eq!(described_snapshot(ecs, &id).await, None);
    for days in [0, 65537] {
        request.retention_days = Some(days);
        request.token = ClientToken::derive("CreateSnapshot", [days.to_string().as_str()]);
        let error = ecs.create_snapshot(deadline(), &request).await.unwrap_err();
        assert_eq!(error.code(), Some("InvalidRetentionDays.Malformed"));
    }
}

pub(crate) async fn somebody_elses_hold_on_a_snapshot_is_refused_by_its_code(
    ecs: &dyn EcsApi,
    world: &World,
) {
    let disk = create_essd(ecs, "source").await;
    let id = ecs
        .create_snapshot(deadline(), &snapshot_of(&disk, "one"))
        .await
        .unwrap();
    for (hold, code) in [
        ("images", "SnapshotCreatedImage"),
        ("locked", "InvalidOperation.SnapshotIsLocked"),
    ] {
        world.configure(json!({"holds": {hold: [id.as_str()]}}));
        let error = ecs.delete_snapshot(deadline(), &id).await.unwrap_err();
        assert_eq!(error.code(), Some(code));
        world.configure(json!({"holds": null}));
    }
    world.configure(json!({"holds": {"archived": [id.as_str()]}}));
    let mut restored = essd("restored");
    restored.snapshot = Some(id.clone());
    let error = ecs.create_disk(deadline(), &restored).await.unwrap_err();
    assert_eq!(error.code(), Some("InvalidSnapshotId.NotReady"));
    ecs.delete_snapshot(deadline(), &id).await.unwrap();
}

pub(crate) async fn snapshots_per_disk_and_in_progress_are_limited(
    ecs: &dyn EcsApi,
    world: &World,
) {
    world.configure(json!({"delays": {"snapshot": "60s"}, "rules": {"alternatives": "first"}}));
    let disk = create_essd(ecs, "source").await;
    let take = async |n: usize| {
        ecs.create_snapshot(deadline(), &snapshot_of(&disk, &format!("cut-{n}")))
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
