//! The checks of chaos and kill detect planted errors.

use serde_json::{Value, json};

use crate::common::expected::{Expected, Volume};
use crate::common::findings::Findings;

fn disk(id: &str, holders: &[&str]) -> Value {
    let held = |node: &&str| json!({"instance": node, "state": "Attached"});
    let attachments: Vec<_> = holders.iter().map(held).collect();
    json!({
        "id": id, "size": 20, "phase": "Available", "attachments": attachments,
        "tags": {"diskplugin.csi.example/name": "pvc-1"},
    })
}

fn findings(wanted: bool, disks: &[Value]) -> Findings {
    let mut expected = Expected::default();
    if wanted {
        let mut volume = Volume {
            name: "pvc-1".to_owned(),
            id: Some("d-1".to_owned()),
            size: 20,
            ..Volume::default()
        };
        volume.created.started = Some(jiff::Timestamp::UNIX_EPOCH);
        volume.created.completed = volume.created.started;
        expected.volumes.insert("pvc-1".to_owned(), volume);
    }
    Findings::of(&expected, &json!({"disks": disks, "snapshots": []}), &[])
}

#[test]
fn leaks_duplicates_lost_disks_and_unwanted_attachments_are_detected() {
    assert!(findings(true, &[disk("d-1", &[])]).is_clean());
    assert_eq!(findings(false, &[disk("d-1", &[])]).leaked.len(), 1);
    let duplicated = findings(true, &[disk("d-1", &[]), disk("d-2", &[])]);
    assert_eq!((duplicated.duplicated.len(), duplicated.leaked.len()), (1, 1));
    assert_eq!(findings(true, &[]).unexpected.len(), 1);
    assert_eq!(findings(true, &[disk("d-1", &["i-1"])]).unexpected.len(), 1);
}
