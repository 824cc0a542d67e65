//! Tags of disks and snapshots.

use ecs::UntagResources;

use crate::contract::world::*;

fn disks(ids: &[&DiskId], set: &[(&str, &str)]) -> TagResources {
    TagResources {
        targets: TagTarget::Disks(ids.iter().map(|id| (*id).clone()).collect()),
        tags: tags(set),
    }
}

contract!(a_tag_filter_requires_all_its_tags, |ecs, _| {
    let all = [("a", "1"), ("b", ""), ("c/d", "x y&z")];
    let disk = create(ecs, &tagged_essd("tagged", &all)).await.unwrap();
    create_essd(ecs, "plain").await;
    let one = std::slice::from_ref(&disk);
    for (filter, found) in [
        (&all[..1], one),
        (&all, one),
        (&[("a", "1"), ("b", "2")], &[]),
        (&[("A", "1")], &[]),
    ] {
        assert_eq!(disks_by_tags(ecs, filter).await, found, "{filter:?}");
    }
});

contract!(tagging_adds_and_overwrites, |ecs, _| {
    let request = tagged_essd("tagged", &[("a", "1"), ("b", "1")]);
    let one = create(ecs, &request).await.unwrap();
    let two = create_essd(ecs, "plain").await;
    let change = disks(&[&one, &two], &[("b", "2"), ("c", "2")]);
    ecs.tag_resources(deadline(), &change).await.unwrap();
    let all = [("a", "1"), ("b", "2"), ("c", "2")];
    for (disk, expected) in [(&one, &all[..]), (&two, &all[1..])] {
        assert_eq!(described(ecs, disk).await.unwrap().tags, tags(expected));
    }
});

contract!(tagging_a_missing_disk_is_not_found_and_changes_nothing, |ecs, _| {
    let disk = create_essd(ecs, "present").await;
    let unknown = "d-unknown".parse().unwrap();
    let change = disks(&[&disk, &unknown], &[("k", "v")]);
    expect_error(ecs.tag_resources(deadline(), &change).await, Kind::NotFound);
    assert_eq!(described(ecs, &disk).await.unwrap().tags, Tags::new());
});

contract!(too_many_tags_are_invalid, |ecs, world| {
    let many = (0..21).map(|n| (format!("k{n}"), String::new()));
    let request = essd_with("tagged", |disk| disk.tags = many.collect());
    expect_error(create(ecs, &request).await, Kind::Invalid);
    assert_eq!(world.disks(), 0);
});

contract!(untagging_removes_only_the_given_keys, |ecs, _| {
    let request = tagged_essd("tagged", &[("a", "1"), ("b", "2")]);
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
});
