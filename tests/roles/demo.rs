//! The demo as a process: its steps, and that it leaves nothing behind, however it ends.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::{Instant, timeout};

use crate::common::csi::{info, list};
use crate::common::machine::{TestDir, can_resize_mounted_ext, has_devices};
use crate::common::process::{Ended, Process, Start};
use crate::common::rng::Rng;
use crate::common::wait::until;
use crate::running::{SOON, wait};
use crate::text::{assert_failed, assert_has, assert_succeeded};

const STEPS: [&str; 21] = [
    "create the volume",
    "attach it to node 1",
    "format and stage it",
    "publish it to a pod",
    "write to it",
    "take a snapshot",
    "write more, after the snapshot",
    "grow the disk",
    "grow the mounted filesystem",
    "unpublish and unstage it",
    "detach it",
    "restore the snapshot",
    "attach it to node 2",
    "stage it",
    "publish it to a pod",
    "read back and compare",
    "unpublish and unstage it",
    "detach it",
    "delete the volume",
    "delete the restored volume",
    "delete the snapshot",
];

const NOTHING_LEFT: &str = "Cleanup complete: no mount, loop device or file is left.";

#[tokio::test]
async fn every_filesystem_completes_all_steps_or_reports_why_not_and_leaves_nothing() {
    if !has_devices("demo --fs-type").await {
        return;
    }
    let run = async |flags: &[&str]| {
        let home = TestDir::new();
        let ended = home.diskplugin([&["demo"], flags].concat()).ended().await;
        assert_eq!(home.leftovers(), [""; 0], "{flags:?}");
        if flags.iter().any(|flag| flag.contains("=ext")) && !can_resize_mounted_ext() {
            let reason = "step 9 (grow the mounted filesystem) failed";
            assert_failed(&ended, 1, &[reason, "CAP_SYS_RESOURCE"]);
            assert_has(&ended.stdout, &[NOTHING_LEFT]);
        } else {
            assert_completed(&ended, &STEPS);
        }
    };
    tokio::join!(
        run(&[]),
        run(&["--fs-type=ext3"]),
        run(&["--fs-type=ext4"]),
        run(&["--fs-type=xfs"]),
        run(&["--fs-type=btrfs"])
    );
}

#[tokio::test]
async fn an_interrupt_at_any_instant_leaves_nothing() {
    if !has_devices("demo under SIGINT").await {
        return;
    }
    // The longest first, five at a time: the whole takes little longer than the longest.
    let run = async |lane: Vec<Duration>| {
        for at in lane {
            interrupted(at, Signal::SIGINT).await;
        }
    };
    let [a, b, c, d, e] = lanes(&instants(10));
    tokio::join!(run(a), run(b), run(c), run(d), run(e));
}

#[tokio::test]
async fn a_closed_terminal_and_a_terminate_leave_nothing() {
    if !has_devices("demo under SIGTERM and SIGHUP").await {
        return;
    }
    tokio::join!(
        interrupted(Duration::from_millis(1900), Signal::SIGTERM),
        interrupted(Duration::from_millis(2600), Signal::SIGHUP),
    );
}

#[tokio::test]
async fn an_interrupt_in_the_middle_of_a_write_leaves_nothing() {
    if !has_devices("demo under SIGINT while it writes").await {
        return;
    }
    let home = TestDir::new();
    let mut demo = home.diskplugin(["demo"]).spawn();
    // Writing is next, and keeps the mount busy.
    demo.wait_for_output("publish it to a pod").await;
    demo.signal(Signal::SIGINT);
    assert_stopped(&home, demo).await;
}

#[tokio::test]
async fn an_impatient_terminal_leaves_nothing() {
    if !has_devices("demo under many SIGINT").await {
        return;
    }
    let home = TestDir::new();
    let mut demo = home.diskplugin(["demo"]).spawn();
    // Formatting is next, by a command.
    demo.wait_for_output("attach it to node 1").await;
    // Repeated Ctrl-C, which each process of the terminal's group receives.
    wait("the demo ends", async || {
        let over = demo.is_over();
        if !over {
            demo.signal_group(Signal::SIGINT);
        }
        over
    })
    .await;
    assert_stopped(&home, demo).await;
}

#[tokio::test]
async fn a_reader_that_goes_away_leaves_nothing() {
    if !has_devices("demo into a closed pipe").await {
        return;
    }
    let home = TestDir::new();
    let line = "\"$0\" demo | head -n 9";
    let shell = Start::of("sh").args(["-c", line, env!("CARGO_BIN_EXE_diskplugin")]);
    let ended = shell.env("TMPDIR", home.path()).ended().await;
    assert_has(&ended.stderr, &["cannot print"]);
    wait("everything is removed", async || home.leftovers().is_empty()).await;
}

#[tokio::test]
async fn a_kept_demo_serves_calls_until_an_interrupt() {
    if !has_devices("demo --keep").await {
        return;
    }
    let home = TestDir::new();
    let mut demo = home.diskplugin(["demo", "--keep"]).spawn();
    demo.wait_for_output("_control/calls").await;
    let printed = demo.stdout();
    let printed_at = |name: &str| {
        let line = printed.lines().find_map(|line| line.trim().strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name}: {printed}")).trim().to_owned()
    };
    let socket = |name: &str| printed_at(name).trim_start_matches("unix://").to_owned();
    let controller = demo.ready(Path::new(&socket("controller "))).await;
    assert_eq!(list(&controller).await.unwrap(), 2);
    for node in ["node 1", "node 2"] {
        let channel = demo.ready(Path::new(&socket(node))).await;
        assert!(info(&channel).await.unwrap().node_id.starts_with("i-"));
    }
    let ledger = std::fs::read(Path::new(&printed_at("volume")).join("ledger")).unwrap();
    assert_eq!(ledger.len(), 8 << 20);
    demo.signal(Signal::SIGINT);
    let start = Instant::now();
    let ended = demo.ended().await;
    assert!(start.elapsed() < SOON);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(home.leftovers(), [""; 0]);
}

#[tokio::test]
async fn without_root_the_steps_in_the_cloud_run_and_the_requirement_is_reported() {
    let home = TestDir::new();
    let ended = if nix::unistd::geteuid().is_root() {
        // This user can neither read the directory of the build nor write to this one.
        let program = home.path().join("diskplugin");
        std::fs::copy(env!("CARGO_BIN_EXE_diskplugin"), &program).unwrap();
        std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let start = Start::of("setpriv")
            .args(nobody)
            .args([program.to_str().unwrap(), "demo"]);
        let ended = start.env("TMPDIR", home.path()).ended().await;
        std::fs::remove_file(program).unwrap();
        ended
    } else {
        home.diskplugin(["demo"]).ended().await
    };
    assert_has(&ended.stdout, &["require root"]);
    let on_the_node = ["stage", "publish", "write", "mounted", "read back"];
    let steps: Vec<_> = STEPS
        .into_iter()
        .filter(|step| !on_the_node.iter().any(|word| step.contains(word)))
        .collect();
    assert_completed(&ended, &steps);
    assert_eq!(home.leftovers(), [""; 0]);
}

/// Asserts that the demo printed exactly these steps, each with its number.
fn assert_completed(ended: &Ended, steps: &[&str]) {
    assert_succeeded(ended);
    let mut rest = ended.stdout.as_str();
    for (number, step) in (1..).zip(steps) {
        let line = format!("\n{number:>3}  {step}  ");
        let at = rest.find(&line);
        rest = &rest[at.unwrap_or_else(|| panic!("no {line:?}: {}", ended.stdout))..];
    }
    let summary = format!("\n{} steps in ", steps.len());
    assert_has(
        rest,
        &[&summary, "Left in the cloud: 0 disks, 0 snapshots.", NOTHING_LEFT],
    );
}

/// Runs the demo, sends it a signal at this instant, and asserts that it stops in time and leaves nothing.
async fn interrupted(at: Duration, signal: Signal) {
    let home = TestDir::new();
    let mut demo = home.diskplugin(["demo"]).spawn();
    let over = until("the demo ends", at + SOON, async || demo.is_over().then_some(()));
    assert!(timeout(at, over).await.is_err(), "it ended before {at:?}");
    println!("{signal} at {at:?}");
    demo.signal(signal);
    assert_stopped(&home, demo).await;
}

async fn assert_stopped(home: &TestDir, demo: Process) {
    let start = Instant::now();
    let ended = demo.ended().await;
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    assert_eq!(home.leftovers(), [""; 0], "{}", ended.stderr);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert_eq!(ended.stderr, "diskplugin: stopped by a signal\n");
    assert_has(&ended.stdout, &["\nStopped: ", NOTHING_LEFT]);
}

/// Pseudo-random instants, one in each equal part of the time that the delays of the demo's cloud take: 7 s.
fn instants(count: u64) -> Vec<Duration> {
    let (mut rng, part) = (Rng(0x5EED), 6_700 / count);
    let draw = |index| Duration::from_millis(200 + index * part + rng.below(part));
    (0..count).map(draw).collect()
}

/// Deals instants to lanes, the longest with the shortest.
fn lanes<const COUNT: usize>(instants: &[Duration]) -> [Vec<Duration>; COUNT] {
    let mut lanes = [const { Vec::new() }; COUNT];
    for (index, at) in instants.iter().rev().enumerate() {
        let round = index % (2 * COUNT);
        let lane = if round < COUNT { round } else { 2 * COUNT - 1 - round };
        lanes[lane].push(*at);
    }
    lanes
}
