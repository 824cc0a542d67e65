//! Paged lists.

use crate::contract::world::*;

over_every_connection!(
    pages_list_every_disk_once,
    the_default_page_has_a_hundred_rows,
    a_page_size_is_clamped,
    snapshot_pages_are_smaller,
    a_page_token_is_valid_only_for_its_query_and_its_lifetime,
    changes_between_pages_neither_repeat_nor_hide_other_disks,
    a_list_by_tags_ends_early_and_a_list_without_tags_does_not,
);

async fn disks(ecs: &Client, count: usize) -> BTreeSet<DiskId> {
    let mut ids = BTreeSet::new();
    for n in 0..count {
        ids.insert(create_essd(ecs, &format!("disk-{n}")).await);
    }
    ids
}

fn by(page_size: u32) -> DescribeDisks {
    DescribeDisks {
        page_size: Some(page_size),
        ..DescribeDisks::default()
    }
}

/// The IDs on all pages, and the number on each page.
async fn walk(ecs: &Client, mut query: DescribeDisks) -> (Vec<DiskId>, Vec<usize>) {
    let (mut ids, mut sizes) = (Vec::new(), Vec::new());
    loop {
        let page = ecs.describe_disks(deadline(), &query).await.unwrap();
        sizes.push(page.rows.len());
        ids.extend(page.rows.into_iter().map(|row| row.id));
        if page.next.is_none() {
            return (ids, sizes);
        }
        assert!(sizes.len() < 100, "paging does not end");
        query.next = page.next;
    }
}

pub(crate) async fn pages_list_every_disk_once(ecs: &Client, _: &World) {
    let wanted = disks(ecs, 25).await;
    let (ids, sizes) = walk(ecs, by(10)).await;
    assert_eq!(sizes, [10, 10, 5]);
    assert_eq!(ids.into_iter().collect::<BTreeSet<_>>(), wanted);
}

pub(crate) async fn the_default_page_has_a_hundred_rows(ecs: &Client, _: &World) {
    disks(ecs, 101).await;
    let (_, sizes) = walk(ecs, DescribeDisks::default()).await;
    assert_eq!(sizes, [100, 1]);
}

pub(crate) async fn a_page_size_is_clamped(ecs: &Client, _: &World) {
    disks(ecs, 12).await;
    assert_eq!(walk(ecs, by(1)).await.1, [10, 2]);
    assert_eq!(walk(ecs, by(501)).await.1, [12]);
}

pub(crate) async fn snapshot_pages_are_smaller(ecs: &Client, _: &World) {
    let disk = create_essd(ecs, "source").await;
    for n in 0..101 {
        let request = snapshot_of(&disk, &format!("cut-{n}"));
        snapshot(ecs, &request).await.unwrap();
    }
    let page = async |page_size, next| {
        let query = DescribeSnapshots {
            page_size: Some(page_size),
            next,
            ..DescribeSnapshots::default()
        };
        let page = ecs.describe_snapshots(deadline(), &query).await.unwrap();
        (page.rows.len(), page.next)
    };
    let (count, next) = page(500, None).await;
    assert!(count == 100 && next.is_some(), "{count}");
    assert_eq!(page(500, next).await, (1, None));
    assert_eq!(page(1, None).await.0, 10);
}

pub(crate) async fn a_page_token_is_valid_only_for_its_query_and_its_lifetime(ecs: &Client, world: &World) {
    world.configure(json!({"rules": {"page_memory": "1h"}}));
    create(ecs, &tagged_essd("tagged", &[("k", "v")])).await.unwrap();
    disks(ecs, 11).await;
    let first = ecs.describe_disks(deadline(), &by(10)).await.unwrap();
    let other = DescribeDisks {
        tags: tags(&[("k", "v")]),
        next: first.next.clone(),
        ..by(10)
    };
    expect_error(ecs.describe_disks(deadline(), &other).await, Kind::Invalid);
    let same = DescribeDisks {
        next: first.next,
        ..by(10)
    };
    let last = ecs.describe_disks(deadline(), &same).await.unwrap();
    assert_eq!((last.rows.len(), last.next), (2, None));
    world.pass(3601);
    expect_error(ecs.describe_disks(deadline(), &same).await, Kind::Invalid);
}

pub(crate) async fn changes_between_pages_neither_repeat_nor_hide_other_disks(ecs: &Client, _: &World) {
    let before = disks(ecs, 25).await;
    let first = ecs.describe_disks(deadline(), &by(10)).await.unwrap();
    let mut ids: Vec<DiskId> = first.rows.into_iter().map(|row| row.id).collect();
    let gone = ids[0].clone();
    ecs.delete_disk(deadline(), &gone).await.unwrap();
    create_essd(ecs, "late").await;
    let rest = DescribeDisks {
        next: first.next,
        ..by(10)
    };
    ids.extend(walk(ecs, rest).await.0);
    let all: BTreeSet<DiskId> = ids.iter().cloned().collect();
    assert_eq!(all.len(), ids.len(), "a disk is listed twice");
    assert!(before.is_subset(&all));
}

pub(crate) async fn a_list_by_tags_ends_early_and_a_list_without_tags_does_not(ecs: &Client, world: &World) {
    world.configure(json!({"rules": {"filtered_rows": 15}}));
    let disk = create_essd(ecs, "source").await;
    let pair = [("k", "v")];
    for n in 0..20 {
        let request = tagged_essd(&format!("disk-{n}"), &pair);
        create(ecs, &request).await.unwrap();
        let request = tagged_snapshot_of(&disk, &format!("cut-{n}"), &pair);
        snapshot(ecs, &request).await.unwrap();
    }
    for (filter, disks, snapshots) in [(tags(&pair), 15, 15), (Tags::new(), 21, 20)] {
        let query = DescribeDisks {
            tags: filter.clone(),
            ..by(10)
        };
        let found = walk(ecs, query).await.0.len();
        let query = DescribeSnapshots {
            tags: filter,
            ..DescribeSnapshots::default()
        };
        let page = ecs.describe_snapshots(deadline(), &query).await.unwrap();
        assert_eq!((found, page.rows.len(), page.next), (disks, snapshots, None));
    }
}
