//! `diskplugin-controller` and `diskplugin-node`: programs with only some of the roles, with the same flags as in
//! `diskplugin`.

use std::path::Path;

use crate::common::csi::endpoint;
use crate::common::process::{Start, diskplugin};
use crate::running::{NO_METADATA, Running};
use crate::text::{assert_failed, assert_has};

/// A program, its role with the flags of `diskplugin`, and roles that it does not have.
struct Program {
    name: &'static str,
    path: &'static str,
    role: &'static str,
    others: &'static [&'static str],
}

const CONTROLLER: Program = Program {
    name: "diskplugin-controller",
    path: env!("CARGO_BIN_EXE_diskplugin-controller"),
    role: "controller",
    others: &["node", "all-in-one", "doctor", "orphans", "mock-cloud"],
};

const NODE: Program = Program {
    name: "diskplugin-node",
    path: env!("CARGO_BIN_EXE_diskplugin-node"),
    role: "node",
    others: &["controller", "all-in-one", "orphans", "demo", "mock-cloud"],
};

impl Program {
    fn start(&self, args: &[&str]) -> Start {
        Start::of(self.path).args(args)
    }
}

#[tokio::test]
async fn each_program_serves_its_role_and_exits_on_sigterm() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().display();
    let (kubelet, state) = (format!("--kubelet-dir={own}"), format!("--state-dir={own}/state"));
    // The cloud is not called.
    let controller = [
        "controller",
        "--region=cn-beijing",
        "--zone=cn-beijing-a",
        "--cluster-id=one",
        "--credentials=environment",
    ];
    let node = ["node", "--node-id=i-one", "--zone=cn-beijing-a", &kubelet, &state];
    for (program, args) in [(CONTROLLER, controller), (NODE, node)] {
        let start = |socket: &Path| program.start(&args).keys().args([endpoint(socket)]);
        Running::of(start).await.stop().await;
    }
}

#[tokio::test]
async fn roles_have_the_same_flags_as_in_diskplugin() {
    for program in [CONTROLLER, NODE] {
        let role = program.role;
        let own = program.start(&[role, "--help"]).ended().await;
        let whole = diskplugin([role, "--help"]).ended().await;
        assert_eq!((own.code, whole.code), (Some(0), Some(0)), "{role}");
        let named = own.stdout.replace(program.name, "diskplugin");
        assert_eq!(named, whole.stdout, "{role}");
    }
}

#[tokio::test]
async fn other_roles_are_rejected_and_the_own_ones_are_listed() {
    for program in [CONTROLLER, NODE] {
        for role in program.others {
            assert_failed(&program.start(&[role]).ended().await, 64, &[role]);
        }
        assert_has(&program.start(&[]).ended().await.stderr, &[program.role]);
    }
}

#[tokio::test]
async fn an_invalid_setting_is_reported_in_the_name_of_the_program() {
    for (program, problem) in [
        (CONTROLLER, "--cluster-id is not set"),
        (NODE, "MAX_VOLUMES_PERNODE is \"0\""),
    ] {
        let start = program
            .start(&[program.role, NO_METADATA])
            .env("MAX_VOLUMES_PERNODE", "0");
        let prefix = format!("{}: missing or invalid settings", program.name);
        assert_failed(&start.ended().await, 64, &[&prefix, problem]);
    }
}
