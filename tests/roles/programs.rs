//! `diskplugin-controller` and `diskplugin-node`: programs with only some of the roles, with the same flags as in
//! `diskplugin`.

use nix::sys::signal::Signal;

use crate::common::csi::socket;
use crate::common::process::{Start, diskplugin};

/// A program, its roles with the flags of `diskplugin`, and roles that it does not have.
struct Program {
    name: &'static str,
    path: &'static str,
    roles: &'static [&'static str],
    others: &'static [&'static str],
}

const CONTROLLER: Program = Program {
    name: "diskplugin-controller",
    path: env!("CARGO_BIN_EXE_diskplugin-controller"),
    roles: &["controller"],
    others: &["node", "all-in-one", "doctor", "orphans", "mock-cloud"],
};

const NODE: Program = Program {
    name: "diskplugin-node",
    path: env!("CARGO_BIN_EXE_diskplugin-node"),
    roles: &["node"],
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
        let socket = socket(&dir);
        let start = program.start(&args).keys();
        let start = start.args([format!("--endpoint=unix://{}", socket.display())]);
        let (process, _channel) = start.ready(&socket).await;
        process.signal(Signal::SIGTERM);
        let ended = process.ended().await;
        assert_eq!(ended.code, Some(0), "{}: {}", program.name, ended.stderr);
    }
}

#[tokio::test]
async fn roles_have_the_same_flags_as_in_diskplugin() {
    for program in [CONTROLLER, NODE] {
        for role in program.roles {
            let own = program.start(&[role, "--help"]).ended().await;
            let whole = diskplugin([role, "--help"]).ended().await;
            assert_eq!((own.code, whole.code), (Some(0), Some(0)), "{role}");
            let named = own.stdout.replace(program.name, "diskplugin");
            assert_eq!(named, whole.stdout, "{role}");
        }
    }
}

#[tokio::test]
async fn other_roles_are_rejected_and_the_own_ones_are_listed() {
    for program in [CONTROLLER, NODE] {
        for role in program.others {
            let ended = program.start(&[role]).ended().await;
            assert_eq!(ended.code, Some(64), "{} {role}", program.name);
            assert!(ended.stderr.contains(role), "{}", ended.stderr);
        }
        let bare = program.start(&[]).ended().await;
        for role in program.roles {
            assert!(bare.stderr.contains(role), "{}", bare.stderr);
        }
    }
}

#[tokio::test]
async fn an_invalid_setting_is_reported_in_the_name_of_the_program() {
    for (program, args, problem) in [
        (CONTROLLER, vec!["controller"], "--cluster-id is not set"),
        (NODE, vec!["node"], "MAX_VOLUMES_PERNODE is \"0\""),
    ] {
        let start = program.start(&args);
        let start = start
            .args(["--metadata-endpoint=http://127.0.0.1:9"])
            .env("MAX_VOLUMES_PERNODE", "0");
        let ended = start.ended().await;
        assert_eq!(ended.code, Some(64), "{}", ended.stderr);
        let prefix = format!("{}: missing or invalid settings", program.name);
        assert!(ended.stderr.contains(&prefix), "{}", ended.stderr);
        assert!(ended.stderr.contains(problem), "{}", ended.stderr);
    }
}
