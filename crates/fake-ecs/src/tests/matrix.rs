//! The result of each call in each state of a disk, with code and HTTP status.

use serde_json::json;

use super::kit::{NODE, OTHER, Sandbox, essd, legacy};
use crate::action::Action;
use crate::params::Params;

/// A fake cloud with a disk in this state. Every operation lasts ten seconds.
fn reach(state: &str, alternatives: &str) -> (Sandbox, String) {
    let mut sandbox = Sandbox::new(&[]);
    sandbox.configure(&json!({"rules": {
        "alternatives": alternatives, "never_attached": true, "missing_is_error": true,
    }}));
    let slow = json!({"delays": {
        "create": "10s", "attach": "10s", "detach": "10s", "snapshot": "10s",
    }});
    if state == "Creating" {
        sandbox.configure(&slow);
    }
    let disk = sandbox.create(legacy());
    match state {
        "Attaching" => {
            sandbox.configure(&slow);
            sandbox.attach(&disk, NODE);
        }
        "In_use here" => assert_eq!(sandbox.attach(&disk, NODE), "ok"),
        "In_use elsewhere" => assert_eq!(sandbox.attach(&disk, OTHER), "ok"),
        "Detaching" => {
            sandbox.attach(&disk, NODE);
            sandbox.configure(&slow);
            sandbox.detach(&disk, NODE);
        }
        "snapshot progressing" => {
            sandbox.attach(&disk, NODE);
            sandbox.detach(&disk, NODE);
            sandbox.configure(&slow);
            sandbox.snapshot(&disk);
        }
        "gone" => assert_eq!(sandbox.delete(&disk), "ok"),
        _ => {}
    }
    (sandbox, disk)
}

fn result_of(sandbox: &mut Sandbox, call: &str, disk: &str) -> String {
    match call {
        "attach" => sandbox.attach(disk, NODE),
        "detach" => sandbox.detach(disk, NODE),
        "delete" => sandbox.delete(disk),
        "resize offline" => sandbox.resize(disk, 40, "offline"),
        "resize online" => sandbox.resize(disk, 40, "online"),
        _ => sandbox.outcome(Action::CreateSnapshot, Params::default().with("DiskId", disk)),
    }
}

const STATUS: &str = "403 IncorrectDiskStatus";

/// The documented results of each call in each state. A disk that is gone is not found by any call.
const TABLE: &str = "
    attach: Creating, Detaching: 403 IncorrectDiskStatus
    attach: Available, snapshot progressing: ok
    attach: Attaching: 403 IncorrectDiskStatus, 403 InvalidOperation.Conflict
    attach: In_use here, In_use elsewhere: 403 IncorrectDiskStatus, 404 InvalidDisk.InUse
    detach: Creating, Attaching: 403 IncorrectDiskStatus
    detach: Available, snapshot progressing: 403 DependencyViolation, 403 IncorrectDiskStatus
    detach: In_use here: ok
    detach: In_use elsewhere: 403 DependencyViolation
    detach: Detaching: 403 InvalidOperation.DiskDetachingFromThisEcs, 403 IncorrectDiskStatus
    delete: Creating: 403 IncorrectDiskStatus, 403 IncorrectDiskStatus.Initializing
    delete: Available: ok
    delete: Attaching, Detaching: 403 IncorrectDiskStatus
    delete: In_use here, In_use elsewhere: 403 DiskStillAttached, 403 IncorrectDiskStatus
    delete: snapshot progressing: 403 DiskCreatingSnapshot
    resize offline: Creating, Attaching, Detaching: 403 IncorrectDiskStatus
    resize offline: Available, In_use here, In_use elsewhere: ok
    resize offline: snapshot progressing: 403 DiskCreatingSnapshot
    resize online: Creating, Available, Attaching, Detaching, snapshot progressing: 403 IncorrectDiskStatus
    resize online: In_use here, In_use elsewhere: ok
    snapshot: Creating, Attaching, Detaching: 403 IncorrectDiskStatus
    snapshot: Available: 403 IncorrectDiskStatus.NeverAttached
    snapshot: In_use here, In_use elsewhere: ok
    snapshot: snapshot progressing: 403 IncorrectDiskStatus.CreatingSnapshot, 403 DISK_HAS_CREATING_SNAPSHOT
";

#[test]
fn every_call_returns_the_documented_error_in_every_state() {
    let rows = TABLE
        .trim()
        .lines()
        .map(|row| row.trim().split(": ").collect::<Vec<_>>());
    for row in rows.clone() {
        for state in row[1].split(", ").chain(["gone"]) {
            let results = if state == "gone" {
                "404 InvalidDiskId.NotFound"
            } else {
                row[2]
            };
            let results: Vec<_> = results.split(", ").collect();
            for (alternatives, wanted) in [("first", results[0]), ("last", results[results.len() - 1])] {
                let (mut sandbox, disk) = reach(state, alternatives);
                let result = result_of(&mut sandbox, row[0], &disk);
                assert_eq!(result, wanted, "{} when {state}", row[0]);
            }
        }
    }
    let states = rows.map(|row| row[1].split(", ").count());
    assert_eq!(states.sum::<usize>(), 6 * 7, "each call in each state");
}

#[test]
fn the_seed_determines_the_choice_between_documented_errors() {
    let results = |seed: &str| -> Vec<String> {
        let mut sandbox = Sandbox::new(&[seed]);
        let disk = sandbox.create(essd());
        sandbox.attach(&disk, NODE);
        (0..20).map(|_| sandbox.attach(&disk, NODE)).collect()
    };
    let one = results("--seed=1");
    assert_eq!(one, results("--seed=1"));
    assert_ne!(one, results("--seed=2"));
    assert!(one.contains(&STATUS.to_owned()));
    assert!(one.contains(&"404 InvalidDisk.InUse".to_owned()));
}

#[test]
fn a_conflict_has_no_message() {
    let (mut sandbox, disk) = reach("Attaching", "last");
    let params = Params::default().with("DiskId", disk).with("InstanceId", NODE);
    let error = sandbox.call(Action::AttachDisk, params).unwrap_err();
    assert_eq!(
        (error.code.as_str(), error.message),
        ("InvalidOperation.Conflict", None)
    );
}
