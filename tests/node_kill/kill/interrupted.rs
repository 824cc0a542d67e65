//! The steps that kills interrupt.

use std::collections::BTreeMap;

use crate::kill::counts::Counts;

/// The kills that must interrupt each kind of step, in thousandths of all kills.
const MIN_SHARE: u64 = 10;

/// Below this number of kills, the shares are only printed.
const MIN_KILLS: u64 = 200;

/// A step of a call, by its text in the plugin's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Mkfs,
    Mount,
    Expansion,
}

impl Step {
    const ALL: [Self; 3] = [Self::Mkfs, Self::Mount, Self::Expansion];

    /// The step that this line starts.
    fn of(line: &str) -> Option<Self> {
        let is = |text| line.contains(text);
        if is(": create a filesystem ") {
            Some(Self::Mkfs)
        } else if is(": mount the device as ") {
            Some(Self::Mount)
        } else if is(": grow the ") {
            Some(Self::Expansion)
        } else {
            None
        }
    }
}

/// The steps that had started when the plugin was killed, and had not finished. The plugin logs each step before it
/// starts, and the end of each call.
pub(crate) fn steps(log: &str) -> Vec<Step> {
    let mut running = BTreeMap::new();
    for line in log.lines() {
        let call = line.split_once("rpc{").and_then(|(_, rest)| rest.split_once("}: "));
        let Some((call, message)) = call else {
            continue;
        };
        // A concurrent call for the same volume.
        if message.contains("OPERATION_PENDING") {
            continue;
        }
        match Step::of(line) {
            Some(step) => running.insert(call, step),
            None => running.remove(call),
        };
    }
    running.into_values().collect()
}

/// Records a kill by the log of the killed plugin.
pub(crate) fn record(interrupted: &Counts, log: &str) {
    let mut steps = steps(log);
    steps.sort();
    steps.dedup();
    for step in steps {
        interrupted.increment(&format!("{step:?}"));
    }
}

/// Fails unless a share of the kills interrupted each kind of step.
pub(crate) fn assert_shares(interrupted: &Counts, kills: u64) {
    if kills < MIN_KILLS {
        return;
    }
    for step in Step::ALL {
        let count = interrupted.count(|name| name == format!("{step:?}"));
        assert!(
            count * 1000 >= kills * MIN_SHARE,
            "only {count} of {kills} kills interrupted {step:?}"
        );
    }
}

#[test]
fn only_steps_that_have_not_finished_are_interrupted() {
    let line = |call: &str, message: &str| format!("T INFO rpc{{disk.id={call}}}: {message}\n");
    let mkfs = line("d-1", "staging: create a filesystem of type ext4 on the blank device");
    let mount = line("d-1", "staging: mount the device as ext4, writable, at /s");
    let grow = line("d-2", "expanding: grow the ext4 to the size of its device");
    let pending = line("d-1", "NodeStageVolume failed: OPERATION_PENDING: volume d-1");
    let done = line("d-1", "NodeStageVolume done");
    assert_eq!(steps(&[mkfs.clone(), pending].concat()), [Step::Mkfs]);
    assert_eq!(
        steps(&[mkfs, mount.clone(), grow].concat()),
        [Step::Mount, Step::Expansion]
    );
    assert_eq!(steps(&[mount, done].concat()), []);
}
