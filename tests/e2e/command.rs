//! Commands that must succeed.

use crate::common::process::Start;

pub(crate) async fn run(program: &str, args: &[&str]) {
    succeed(Start::with_pdeathsig(program).args(args)).await;
}

/// Waits for its end, and returns its output.
pub(crate) async fn succeed(start: Start) -> String {
    let command = format!("{start:?}");
    let ended = start.ended().await;
    assert_eq!(ended.code, Some(0), "{command}: {}{}", ended.stdout, ended.stderr);
    ended.stdout
}
