//! The machine's shell: what a test does to the machine beside the driver, and whether the machine has what that takes.

use std::path::Path;
use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::host::{Command, Exec, Processes};

/// Longer than any line takes on a busy machine.
const AMPLE: Duration = Duration::from_secs(300);

/// Runs a line of shell and returns what it printed.
pub(crate) async fn sh(line: &str) -> String {
    let command = Command::new("sh").args(["-ec", line]);
    let output = Processes.run(&command, Deadline::after(AMPLE)).await;
    let output = command.success(output.unwrap()).unwrap();
    output.stdout.trim().to_owned()
}

/// Whether this machine has root, loop devices and what a line of shell looks for; aloud when it has not, and never so in
/// CI.
pub(crate) async fn can_run(tests: &str, line: &str) -> bool {
    let probe = format!(
        "test $(id -u) = 0 && f=$(mktemp) && truncate -s 1M $f && d=$(losetup -f --show $f) \
         && losetup -d $d && rm $f && {line}"
    );
    let command = Command::new("sh").args(["-ec", &probe]);
    let reason = match Processes.run(&command, Deadline::after(AMPLE)).await {
        Ok(output) if output.code == Some(0) => return true,
        Ok(output) => format!(
            "root, loop devices and what follows are needed ({line}): {}",
            output.stderr
        ),
        Err(error) => error.to_string(),
    };
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!ci, "nothing is skipped in CI: {reason}");
    eprintln!("SKIPPED: {tests} because {reason}");
    false
}

/// Takes off what is mounted below a directory, and the loop devices whose files are there; for destructors, which have no
/// runtime to await in.
#[expect(
    clippy::disallowed_methods,
    reason = "a destructor has no runtime to await in"
)]
pub(crate) fn take_down(directory: &Path) {
    let dir = directory.display();
    // A device that was torn out has gone with its last mount, and may be somebody else's by now.
    let script = format!(
        "for m in $(awk '$5 ~ \"^{dir}/\" {{print $5}}' /proc/self/mountinfo | sort -r); do umount $m; done
         for d in $(losetup -n -l -O NAME,BACK-FILE | awk '$2 ~ \"^{dir}/\" {{print $1}}'); do
            case $(cat /sys/block/${{d#/dev/}}/loop/backing_file 2>/dev/null) in {dir}/*) blockdev --setrw $d; losetup -d $d;; esac
         done"
    );
    let status = std::process::Command::new("sh")
        .args(["-c", &script])
        .status();
    if !status.is_ok_and(|status| status.success()) {
        eprintln!("cannot take down {dir}");
    }
}
