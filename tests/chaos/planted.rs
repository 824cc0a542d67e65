//! The judge of chaos and kill finds what is planted.

use serde_json::{Value, json};

use crate::facts::{Facts, Volume};
use crate::judge::Verdict;

fn disk(id: &str, holders: &[&str]) -> Value {
    let held = |node: &&str| json!({"instance": node, "link": "Attached"});
    let attachments: Vec<_> = holders.iter().map(held).collect();
    json!({
        "id": id, "size": 20, "phase": "Available", "attachments": attachments,
        "tags": {"diskplugin.csi.example/name": "pvc-1"},
    })
}

fn verdict(wanted: bool, disks: &[Value]) -> Verdict {
    let mut facts = Facts::default();
    if wanted {
        let mut volume = Volume {
            name: "pvc-1".to_owned(),
            id: Some("d-1".to_owned()),
            size: 20,
            ..Volume::default()
        };
        volume.created.asked = Some(jiff::Timestamp::UNIX_EPOCH);
        volume.created.told = volume.created.asked;
        facts.volumes.insert("pvc-1".to_owned(), volume);
    }
    Verdict::of(&facts, &json!({"disks": disks, "snapshots": []}), &[])
}

#[test]
fn the_judge_finds_a_leak_a_double_a_lost_disk_and_a_holder_that_nobody_wants() {
    assert!(verdict(true, &[disk("d-1", &[])]).is_clean());
    assert_eq!(verdict(false, &[disk("d-1", &[])]).leaked.len(), 1);
    let doubled = verdict(true, &[disk("d-1", &[]), disk("d-2", &[])]);
    assert_eq!((doubled.doubled.len(), doubled.leaked.len()), (1, 1));
    assert_eq!(verdict(true, &[]).stolen.len(), 1);
    assert_eq!(verdict(true, &[disk("d-1", &["i-1"])]).stolen.len(), 1);
}
