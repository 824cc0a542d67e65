//! Shell commands of tests, and checks for the tools they need.

use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::linux::{Command, Exec, ProcessExec};

/// Timeout of a command, for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Runs a shell command and returns its standard output.
pub(crate) async fn sh(line: &str) -> String {
    let command = Command::new("sh").args(["-ec", line]);
    let output = ProcessExec.run(&command, Deadline::after(TIMEOUT)).await;
    let output = command.check_exit_code(output.unwrap()).unwrap();
    output.stdout.trim().to_owned()
}

/// Whether root and loop devices are available and a shell command succeeds. Prints the reason if not; fails in CI.
pub(crate) async fn can_run(tests: &str, line: &str) -> bool {
    let probe = format!(
        "test $(id -u) = 0 && f=$(mktemp) && truncate -s 1M $f && d=$(flock /dev losetup -f --show $f) \
         && losetup -d $d && rm $f && {line}"
    );
    let command = Command::new("sh").args(["-ec", &probe]);
    let reason = match ProcessExec.run(&command, Deadline::after(TIMEOUT)).await {
        Ok(output) if output.code == Some(0) => return true,
        Ok(output) => format!(
            "root, loop devices and these tools are required ({line}): {}",
            output.stderr
        ),
        Err(error) => error.to_string(),
    };
    skip(tests, &reason)
}

/// Whether a shell command succeeds. Prints what is missing if not; fails in CI.
pub(crate) async fn has(tests: &str, line: &str, missing: &str) -> bool {
    let command = Command::new("sh").args(["-ec", line]);
    let output = ProcessExec.run(&command, Deadline::after(TIMEOUT)).await;
    output.is_ok_and(|output| output.code == Some(0)) || skip(tests, missing)
}

/// Prints why tests are skipped, and returns false. Nothing is skipped in CI.
pub(crate) fn skip(tests: &str, reason: &str) -> bool {
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!ci, "{tests} cannot run, and nothing is skipped in CI: {reason}");
    eprintln!("SKIPPED: {tests} because {reason}");
    false
}
