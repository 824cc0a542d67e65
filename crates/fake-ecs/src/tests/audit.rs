//! Totals of calls.

use serde_json::json;

use super::kit::{Sandbox, essd, region};
use crate::action::Action;
use crate::audit::Audit;
use crate::params::Params;

fn audit(sandbox: &Sandbox) -> Audit {
    sandbox.world.log.tally.audit()
}

fn named(name: &str, token: &str) -> Params {
    essd().with("DiskName", name).with("ClientToken", token)
}

#[test]
fn a_repeated_call_creates_nothing_and_another_token_creates_a_duplicate() {
    let mut sandbox = Sandbox::new(&[]);
    let one = sandbox.create(named("pvc-1", "a"));
    assert_eq!(sandbox.create(named("pvc-1", "a")), one);
    assert_eq!(audit(&sandbox).duplicates().len(), 0);
    let created: Vec<_> = sandbox.world.log.entries().map(|e| e.created.clone()).collect();
    assert_eq!(created, [Some(one.clone()), None]);

    let two = sandbox.create(named("pvc-1", "b"));
    let audit = audit(&sandbox);
    let duplicates = audit.duplicates();
    assert_eq!(duplicates.len(), 1);
    assert_eq!(
        (duplicates[0].name.as_str(), duplicates[0].max_concurrent),
        ("pvc-1", 2)
    );
    assert_eq!(duplicates[0].ids, [one, two]);
}

#[test]
fn a_disk_that_replaces_a_deleted_one_is_not_a_duplicate() {
    let mut sandbox = Sandbox::new(&[]);
    let one = sandbox.create(named("pvc-1", "a"));
    assert_eq!(sandbox.delete(&one), "ok");
    let two = sandbox.create(named("pvc-1", "b"));
    let audit = audit(&sandbox);
    assert_eq!(audit.created[0].ids, [one, two]);
    assert_eq!(audit.duplicates().len(), 0);
}

#[test]
fn a_disk_that_disappears_in_its_own_call_is_never_counted_as_existing() {
    let mut sandbox = Sandbox::new(&[]);
    sandbox.configure(&json!({"faults": [{"action": "CreateDisk", "kind": "fails-later"}]}));
    let one = sandbox.create(named("pvc-1", "a"));
    let audit = audit(&sandbox);
    assert_eq!(audit.created[0].ids, [one]);
    assert_eq!(audit.created[0].max_concurrent, 0);
}

#[test]
fn resources_of_a_lost_response_are_counted() {
    let mut sandbox = Sandbox::new(&[]);
    let fault = json!({"action": "CreateDisk", "kind": "internal-error-after"});
    sandbox.configure(&json!({"faults": [fault]}));
    let lost = sandbox.outcome(Action::CreateDisk, named("pvc-1", "a"));
    assert_eq!(lost, "500 InternalError");
    let repeat = sandbox.create(named("pvc-1", "a"));
    assert_eq!(audit(&sandbox).created[0].ids, [repeat]);
    sandbox.create(named("pvc-1", "b"));
    assert_eq!(audit(&sandbox).duplicates().len(), 1);
}

#[test]
fn calls_are_counted_by_action_and_minute_of_the_clock() {
    let mut sandbox = Sandbox::new(&["--throttle=2"]);
    let describe = |sandbox: &mut Sandbox, times| {
        for _ in 0..times {
            let _ = sandbox.call(Action::DescribeDisks, region());
        }
    };
    describe(&mut sandbox, 5);
    sandbox.pass(60);
    describe(&mut sandbox, 3);
    sandbox.pass(60);
    describe(&mut sandbox, 2);
    let audit = audit(&sandbox);
    let rows: Vec<_> = audit
        .minutes
        .iter()
        .map(|m| (m.calls, m.throttled, m.after_throttling))
        .collect();
    assert_eq!(rows, [(5, 3, 2), (3, 1, 0), (2, 0, 0)]);
    assert!(audit.minutes.iter().all(|minute| minute.action == "DescribeDisks"));
}

#[test]
fn totals_include_dropped_log_entries() {
    let mut sandbox = Sandbox::new(&[]);
    sandbox.configure(&json!({"rules": {"log_length": 1}}));
    sandbox.create(named("pvc-1", "a"));
    sandbox.create(named("pvc-1", "b"));
    assert_eq!(sandbox.world.log.entries().count(), 1);
    assert_eq!(audit(&sandbox).duplicates().len(), 1);
    assert_eq!(audit(&sandbox).minutes[0].calls, 2);
    sandbox.world.log.clear();
    assert_eq!(audit(&sandbox), Audit::default());
}
