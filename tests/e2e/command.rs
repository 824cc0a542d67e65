//! Commands that must do well.

use crate::common::process::Start;

pub(crate) async fn run(program: &str, args: &[&str]) {
    succeed(Start::with_pdeathsig(program).args(args)).await;
}

/// Waits for its end; what it printed.
pub(crate) async fn succeed(start: Start) -> String {
    let what = format!("{start:?}");
    let ended = start.ended().await;
    assert_eq!(ended.code, Some(0), "{what}: {}{}", ended.stdout, ended.stderr);
    ended.stdout
}
