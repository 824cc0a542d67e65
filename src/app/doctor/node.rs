//! The checks of this machine: those of `/readyz`, and the memory for filesystem tools.

use std::sync::Arc;

use super::versions;
use crate::app::node::OWN_MEMORY;
use crate::cli;
use crate::http::health::{self, NodeChecks};
use crate::linux::{Linux, ProcessExec, Roots, memory};
use crate::model::Bytes;
use crate::node::Prerequisites;
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
    let results = checks.run().await.into_iter().map(requirement);
    let roots = Roots::default();
    let limit = memory::limit(&roots.proc, &roots.sys);
    let versions = versions::check(exec.as_ref()).await;
    results.chain([versions, memory_check(limit)]).collect()
}

/// A check of `/readyz` as a check of doctor.
fn requirement(result: health::Check) -> Check {
    let name = format!("node/{}", result.name);
    let advice = "see the requirements of a node in docs/reference/support.md";
    match (result.ok, result.is_limited) {
        (true, false) => Check::ok(name, result.message),
        (true, true) => Check::warning(name, result.message, advice),
        (false, _) => Check::failed(name, result.message, advice),
    }
}

fn memory_check(limit: Option<Bytes>) -> Check {
    let name = "node/memory";
    let Some(Bytes(limit)) = limit else {
        return Check::ok(name, "the control group has no memory limit");
    };
    let text = format!("the memory limit of the control group is {} MiB", limit >> 20);
    match limit < OWN_MEMORY + LEAST_TOOL_MEMORY {
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
        let of = |outcome: Result<String, String>, is_limited| {
            let result = health::Check {
                is_limited,
                ..health::Check::new("capabilities", outcome)
            };
            requirement(result).status
        };
        assert_eq!(of(Ok(String::new()), false), Status::Ok);
        assert_eq!(of(Ok(String::new()), true), Status::Warning);
        assert_eq!(of(Err(String::new()), false), Status::Failed);
    }

    #[test]
    fn memory_must_suffice_for_the_driver_and_one_tool() {
        for (limit, status) in [
            (None, Status::Ok),
            (Some(Bytes(48 << 20)), Status::Ok),
            (Some(Bytes(47 << 20)), Status::Failed),
        ] {
            assert_eq!(memory_check(limit).status, status, "{limit:?}");
        }
    }
}
