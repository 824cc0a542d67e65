use super::super::fixtures::{HOUR, disk, now, observed, rules, volume};
use super::*;
use crate::ops::orphans::classify;

#[test]
fn each_guard_refuses_a_deletion() {
    let mut observed = observed();
    observed.disks.push(disk("d-lost"));
    let report = classify(&observed, &rules()).unwrap();
    let lost = disk("d-lost");
    let current = Current {
        tags: lost.tags,
        group: None,
        created: lost.created,
        holders: Vec::new(),
        is_owned: true,
    };
    let judge = |id: &str, current: &Current, volumes: &Volumes, older_than| {
        let id: ResourceId = id.parse().unwrap();
        refusal(&id, current, volumes, &report, older_than, now())
    };
    let volumes = &observed.after;
    assert_eq!(judge("d-lost", &current, volumes, HOUR), None);
    let not_owned = Current {
        is_owned: false,
        tags: Tags::new(),
        ..current.clone()
    };
    assert_eq!(
        judge("d-lost", &not_owned, volumes, HOUR),
        Some(Refusal::NotOwned(None))
    );
    let mut bound = volumes.clone();
    bound.volumes.push(volume("pv", "d-lost"));
    assert_eq!(judge("d-lost", &current, &bound, HOUR), Some(Refusal::Referenced));
    let holder: InstanceId = "i-1".parse().unwrap();
    let attached = Current {
        holders: vec![holder.clone()],
        ..current.clone()
    };
    assert_eq!(
        judge("d-lost", &attached, volumes, HOUR),
        Some(Refusal::Attached(vec![holder]))
    );
    let young = Some(Refusal::TooYoung {
        age: Some(2 * HOUR),
        older_than: 3 * HOUR,
    });
    assert_eq!(judge("d-lost", &current, volumes, 3 * HOUR), young);
    assert_eq!(judge("d-else", &current, volumes, HOUR), Some(Refusal::NotReported));
    let of_clone = Current {
        tags: Tags::from([(tag::CLONE_FOR.to_owned(), format!("pvc-{UID}"))]),
        ..current.clone()
    };
    let mut claimed = volumes.clone();
    claimed.claims.insert(UID.to_owned());
    assert_eq!(judge("d-lost", &of_clone, &claimed, HOUR), Some(Refusal::Referenced));
    let in_group = Current {
        group: "ssg-1".parse().ok(),
        ..current
    };
    let mut grouped = volumes.clone();
    grouped.other_handles.insert("ssg-1".to_owned());
    assert_eq!(judge("d-lost", &in_group, &grouped, HOUR), Some(Refusal::Referenced));
}

const UID: &str = "6a0285cc-35e3-4a23-bde8-1b1f0fc2fe26";
