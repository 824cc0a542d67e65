//! The checks of this machine by `doctor`: those of `/readyz`, and the memory for filesystem tools.

use std::sync::Arc;

use super::node::OWN_MEMORY;
use crate::cli;
use crate::http::health::NodeChecks;
use crate::linux::{Linux, ProcessExec, Roots, memory};
use crate::model::Bytes;
use crate::node::{Prerequisites, tool_versions};
use crate::ops::doctor::Check;

/// The smallest memory with which filesystem tools are run (`--tool-memory`).
const LEAST_TOOL_MEMORY: u64 = 16 << 20;

pub(super) async fn check(args: cli::NodeDirectoryArgs) -> Vec<Check> {
    let exec = Arc::new(ProcessExec);
    let host = Arc::new(Linux::new(Arc::clone(&exec) as _, Roots::default()));
    let checks = NodeChecks {
        prerequisites: Prerequisites::new(host, args.kubelet_dir, args.state_dir),
        require_shared_mounts: true,
    };
    let results = checks.run().await.into_iter();
    let results = results.map(|check| requirement(check.name, check.ok, check.is_limited, check.message));
    let roots = Roots::default();
    let limit = memory::limit(&roots.proc, &roots.sys);
    let versions = Check::ok("node/versions", tool_versions(exec.as_ref()).await);
    results
        .chain([versions, memory_limit(limit, Bytes(OWN_MEMORY))])
        .collect()
}

/// A check of `/readyz`.
fn requirement(name: &str, is_ok: bool, is_limited: bool, found: String) -> Check {
    let name = format!("node/{name}");
    let advice = "see the requirements of a node in docs/reference/support.md";
    match (is_ok, is_limited) {
        (true, true) => Check::warning(name, found, advice),
        (true, false) => Check::ok(name, found),
        (false, _) => Check::failed(name, found, advice),
    }
}

/// The memory limit of the container, of which the driver needs its own part.
fn memory_limit(limit: Option<Bytes>, own: Bytes) -> Check {
    let name = "node/memory";
    let Some(Bytes(limit)) = limit else {
        return Check::ok(name, "the control group has no memory limit");
    };
    let text = format!("the memory limit of the control group is {} MiB", limit >> 20);
    match limit < own.0 + LEAST_TOOL_MEMORY {
        true => Check::failed(
            name,
            text,
            "raise the memory limit of the container: mkfs and fsck run in it",
        ),
        false => Check::ok(name, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::doctor::Status;

    #[test]
    fn a_limitation_is_a_warning() {
        let of = |is_ok, is_limited| requirement("capabilities", is_ok, is_limited, String::new()).status;
        assert_eq!(of(true, false), Status::Ok);
        assert_eq!(of(true, true), Status::Warning);
        assert_eq!(of(false, false), Status::Failed);
    }

    #[test]
    fn memory_must_suffice_for_the_driver_and_one_tool() {
        for (limit, status) in [
            (None, Status::Ok),
            (Some(Bytes(48 << 20)), Status::Ok),
            (Some(Bytes(47 << 20)), Status::Failed),
        ] {
            assert_eq!(memory_limit(limit, Bytes(32 << 20)).status, status, "{limit:?}");
        }
    }
}
