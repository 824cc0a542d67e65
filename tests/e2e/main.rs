//! The driver in a real Kubernetes with kubelet: containerd runs the driver's image, the chart is installed by Helm,
//! and pods use volumes, which are loop devices of the fake cloud.
//!
//! All scenarios share one cluster. Disruptive scenarios run after the others, one at a time. With the argument `stay`
//! the cluster runs until Ctrl-C for interactive use, with `figure` or `fencing` it is measured, and with `upstream`
//! Kubernetes' storage suite runs on it. Requires root, and the programs that `scripts/setup cluster` installs.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "other suites use the rest")]
mod common;

// The control plane of tests/cluster.
#[path = "../cluster/address.rs"]
mod address;
#[path = "../cluster/api.rs"]
#[expect(dead_code, reason = "tests/cluster uses the rest")]
mod api;
#[path = "../cluster/cloud.rs"]
#[expect(dead_code, reason = "tests/cluster uses the rest")]
mod cloud;
#[path = "../cluster/helm.rs"]
#[expect(dead_code, reason = "the suite without kubelets uses the rest")]
mod helm;
#[path = "../cluster/keys.rs"]
mod keys;
#[path = "../cluster/log_lines.rs"]
mod log_lines;
#[path = "../cluster/namespace.rs"]
mod namespace;
#[path = "../cluster/path.rs"]
#[expect(dead_code, reason = "tests/cluster uses the rest")]
mod path;
#[path = "../cluster/plane.rs"]
#[expect(dead_code, reason = "tests/cluster uses the rest")]
mod plane;
#[path = "../cluster/program.rs"]
#[expect(dead_code, reason = "tests/cluster uses the rest")]
mod program;
#[path = "../cluster/suite.rs"]
mod suite;
#[path = "../cluster/wait.rs"]
mod wait;

// The parser of pages of tests/docs.
#[path = "../docs/page.rs"]
#[expect(dead_code, reason = "tests/docs uses the rest")]
mod page;
#[path = "../docs/script.rs"]
mod script;

mod cluster;
mod command;
mod figure;
mod images;
mod install;
mod needs;
mod network;
mod outside;
mod proxy;
mod report;
mod scene;
mod site;
mod stay;
mod upstream;
mod worker;

mod disturb;
mod drained;
mod fenced;
mod keep;
mod moved;
mod share;
mod stuck;
mod tutorial;

fn main() -> std::process::ExitCode {
    if std::env::var_os(outside::INSIDE).is_none() {
        return outside::enter();
    }
    match std::env::args().nth(1).as_deref() {
        Some(stay::WORD) => return stay::run(),
        Some(figure::WORD) => return figure::run(),
        Some(fenced::WORD) => return fenced::run(),
        Some(upstream::WORD) => return upstream::run(),
        _ => {}
    }
    let together = suite::scenarios![
        "database" => keep::database,
        "block" => keep::block,
        "tutorial" => tutorial::as_written,
        "read-only" => share::read_only,
        "group" => share::group,
        "two-pods" => share::two_pods,
        "once" => share::once,
        "readers" => share::readers,
    ];
    let alone = suite::scenarios![
        // Its pod is in the namespace of the release, whose pods the tutorial lists.
        "helm-test" => keep::helm_test,
        "stuck" => stuck::the_cause_is_named,
        "upstream" => upstream::run_selected,
        "kubelet" => disturb::kubelet_restarted,
        "upgraded" => disturb::upgraded,
        "killed" => disturb::killed_during_stage,
        "moved" => moved::to_another_node,
        "drained" => drained::its_pod_starts_elsewhere,
        "fenced" => fenced::its_pod_starts_elsewhere,
        "uninstalled" => disturb::uninstalled,
    ];
    suite::run(vec![together, alone])
}
