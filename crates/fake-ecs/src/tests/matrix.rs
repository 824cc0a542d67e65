//! The result of each call in each state of a disk, with code and HTTP status.

use serde_json::json;

use super::kit::{NODE, OTHER, Sandbox, essd, legacy};
use crate::action::Action;
use crate::params::Params;

/// The states of a disk.
const STATES: [&str; 8] = [
    "Creating",
    "Available",
    "Attaching",
    "In_use here",
    "In_use elsewhere",
    "Detaching",
    "snapshot progressing",
    "gone",
];

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
const GONE: &str = "404 InvalidDiskId.NotFound";
const BUSY: &str = "403 DiskCreatingSnapshot";

/// For each call, the documented results by state.
fn table() -> Vec<(&'static str, [Vec<&'static str>; 8])> {
    let ok = || vec!["ok"];
    let status = || vec![STATUS];
    let gone = || vec![GONE];
    vec![
        (
            "attach",
            [
                status(),
                ok(),
                vec![STATUS, "403 InvalidOperation.Conflict"],
                vec![STATUS, "404 InvalidDisk.InUse"],
                vec![STATUS, "404 InvalidDisk.InUse"],
                status(),
                ok(),
                gone(),
            ],
        ),
        (
            "detach",
            [
                status(),
                vec!["403 DependencyViolation", STATUS],
                status(),
                ok(),
                vec!["403 DependencyViolation"],
                vec!["403 InvalidOperation.DiskDetachingFromThisEcs", STATUS],
                vec!["403 DependencyViolation", STATUS],
                gone(),
            ],
        ),
        (
            "delete",
            [
                vec![STATUS, "403 IncorrectDiskStatus.Initializing"],
                ok(),
                status(),
                vec!["403 DiskStillAttached", STATUS],
                vec!["403 DiskStillAttached", STATUS],
                status(),
                vec![BUSY],
                gone(),
            ],
        ),
        (
            "resize offline",
            [status(), ok(), status(), ok(), ok(), status(), vec![BUSY], gone()],
        ),
        (
            "resize online",
            [status(), status(), status(), ok(), ok(), status(), status(), gone()],
        ),
        (
            "snapshot",
            [
                status(),
                vec!["403 IncorrectDiskStatus.NeverAttached"],
                status(),
                ok(),
                ok(),
                status(),
                vec![
                    "403 IncorrectDiskStatus.CreatingSnapshot",
                    "403 DISK_HAS_CREATING_SNAPSHOT",
                ],
                gone(),
            ],
        ),
    ]
}

#[test]
fn every_call_returns_the_documented_error_in_every_state() {
    for (call, row) in table() {
        for (state, results) in STATES.iter().zip(&row) {
            for (alternatives, wanted) in [("first", results.first()), ("last", results.last())] {
                let (mut sandbox, disk) = reach(state, alternatives);
                let result = result_of(&mut sandbox, call, &disk);
                assert_eq!(Some(&result.as_str()), wanted, "{call} when {state}");
            }
        }
    }
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
