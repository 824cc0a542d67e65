//! Checks a filesystem before it is mounted, according to the class's `fsck` policy.
//!
//! `preen`, the default, runs `e2fsck -p`. `journal` only replays the journal, which the kernel does on mount: `e2fsck
//! -n` does not replay it and reports changes that are not written back yet as damage, and `-E journal_only` does no
//! more than the mount. It checks the error flag that kernel and e2fsck set in the superblock.

use super::observe::{CallContext, quick};
use super::tools::{self, Tools};
use super::{Error, Result};
use crate::linux::filesystem::{self, CheckResult};
use crate::linux::{Command, Device, ExecFailure, Output};
use crate::model::{Failure, Filesystem, Fsck};

const STEP: &str = "check the filesystem";

/// Checks an ext filesystem. The policy `preen` permits the repairs that e2fsck considers safe.
pub(super) async fn check(
    tools: &Tools,
    call: CallContext<'_>,
    filesystem: Filesystem,
    fsck: Fsck,
    device: &Device,
) -> Result<()> {
    debug_assert!(filesystem.is_ext(), "{filesystem}");
    match fsck {
        Fsck::Preen => preen(tools, call, device, &filesystem::check(&device.path)).await,
        Fsck::Journal => check_error_flag(call, filesystem, device).await,
        Fsck::None => Ok(()),
    }
}

async fn check_error_flag(call: CallContext<'_>, filesystem: Filesystem, device: &Device) -> Result<()> {
    let superblocks = call.wrap(call.host.superblocks(quick(), device)).await?;
    if !superblocks.ext.is_some_and(|ext| ext.has_errors()) {
        return Ok(());
    }
    let repair = filesystem::repair_command(filesystem, &device.path);
    let reason = format!(
        "its superblock records errors, and the volume attribute `fsck: journal` permits no repair; run `{repair}` \
         manually, preferably on a disk created from a snapshot first"
    );
    Err(damaged(call, device, &reason))
}

/// Grows an unmounted ext filesystem. resize2fs requires a full check before; if the policy forbids repairs, a
/// read-only check comes first, so that the full check has nothing to repair.
pub(super) async fn grow_unmounted(tools: &Tools, call: CallContext<'_>, fsck: Fsck, device: &Device) -> Result<()> {
    let path = &device.path;
    if fsck != Fsck::Preen {
        preen(tools, call, device, &filesystem::replay_journal(path)).await?;
        let check = filesystem::check_read_only(path);
        let output = tools.output(call, STEP, &check).await?;
        let text = output_text(&output);
        match filesystem::check_result(output.code) {
            CheckResult::Clean => {}
            CheckResult::Repaired | CheckResult::Damaged => {
                let reason = format!(
                    "it must be clean to be expanded, and `{check}` reports errors: {text}; the volume attribute \
                     `fsck: {fsck}` permits no repair: run `e2fsck -f {}` manually",
                    path.display()
                );
                return Err(damaged(call, device, &reason));
            }
            CheckResult::Failed => return Err(failed(call, &check, output.code, text)),
        }
    }
    let [check, grow] = filesystem::grow_unmounted(path);
    preen(tools, call, device, &check).await?;
    tools.run(call, "grow the filesystem", &grow).await
}

/// Runs a check with the repairs that e2fsck considers safe.
async fn preen(tools: &Tools, call: CallContext<'_>, device: &Device, command: &Command) -> Result<()> {
    let output = tools.output(call, STEP, command).await?;
    let output_text = output_text(&output);
    match filesystem::check_result(output.code) {
        CheckResult::Clean => Ok(()),
        CheckResult::Repaired => {
            tracing::warn!(disk.id = %call.id(), output = output_text, "filesystem repaired");
            Ok(())
        }
        CheckResult::Damaged => {
            let code = output.code.unwrap_or_default();
            let reason = format!("`{command}` exited with code {code}; run e2fsck manually: {output_text}");
            Err(damaged(call, device, &reason))
        }
        // The kernel may be newer than the tool; if it is not, the mount fails.
        CheckResult::Failed if filesystem::is_unsupported(&output_text) => {
            tracing::warn!(disk.id = %call.id(), output = output_text, "the filesystem is not checked");
            Ok(())
        }
        CheckResult::Failed => Err(failed(call, command, output.code, output_text)),
    }
}

fn output_text(output: &Output) -> String {
    format!("{} {}", output.stdout.trim(), output.stderr.trim())
}

fn failed(call: CallContext<'_>, check: &Command, code: Option<i32>, stderr: String) -> Error {
    tools::failed(call, STEP)(check.error(ExecFailure::Exit { code, stderr }))
}

/// The error for a filesystem with damage: `reason` is the evidence, and the command to run.
pub(super) fn damaged(call: CallContext<'_>, device: &Device, reason: &str) -> Error {
    let message = format!("the filesystem on {device} is damaged and is not repaired automatically: {reason}");
    call.error(Failure::FilesystemDamaged, message)
}
