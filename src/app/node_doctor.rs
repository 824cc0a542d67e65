//! The checks of this machine by `doctor`: those of `/readyz`, and the memory for filesystem tools.

use std::sync::Arc;

use super::node::OWN_MEMORY;
use crate::cli;
use crate::http::health::NodeChecks;
use crate::linux::{Linux, ProcessExec, Roots, memory};
use crate::model::Bytes;
use crate::node::{Prerequisites, tool_versions};
use crate::ops::doctor::{Check, node};

pub(super) async fn check(args: cli::NodeDirectoryArgs) -> Vec<Check> {
    let exec = Arc::new(ProcessExec);
    let host = Arc::new(Linux::new(Arc::clone(&exec) as _, Roots::default()));
    let checks = NodeChecks {
        prerequisites: Prerequisites::new(host, args.kubelet_dir, args.state_dir),
        require_shared_mounts: true,
    };
    let results = checks.run().await.into_iter();
    let results = results.map(|check| node::requirement(check.name, check.ok, check.is_limited, check.message));
    let roots = Roots::default();
    let limit = memory::limit(&roots.proc, &roots.sys);
    let versions = Check::ok("node/versions", tool_versions(exec.as_ref()).await);
    results
        .chain([versions, node::memory(limit, Bytes(OWN_MEMORY))])
        .collect()
}
