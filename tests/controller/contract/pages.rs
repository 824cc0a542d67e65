//! Paged lists.

use crate::contract::world::*;

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

contract!(pages_of_any_size_list_every_disk_once, |ecs, _| {
    let wanted = disks(ecs, 101).await;
    let tens = [vec![10; 10], vec![1]].concat();
    for (query, expected) in [
        (by(10), tens.clone()),
        (by(1), tens),
        (by(501), vec![101]),
        (DescribeDisks::default(), vec![100, 1]),
    ] {
        let (ids, sizes) = walk(ecs, query).await;
        assert_eq!(sizes, expected);
        assert_eq!(ids.into_iter().collect::<BTreeSet<_>>(), wanted);
    }
});

contract!(snapshot_pages_are_smaller, |ecs, _| {
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
});

contract!(a_page_token_is_valid_for_its_query_and_lifetime, |ecs, world| {
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
});

contract!(changes_between_pages_neither_repeat_nor_hide_other_disks, |ecs, _| {
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
});

contract!(only_a_list_by_tags_ends_early, |ecs, world| {
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
});
