//! The driver in a real Kubernetes without kubelet: control plane and sidecars on loopback, the chart installed by
//! Helm, `diskplugin controller` on the fake cloud, and nodes that are API objects only.
//!
//! All scenarios share one cluster. Disruptive scenarios run after the others, one at a time; the last one checks which
//! permissions were used. Requires the programs that `scripts/setup cluster` builds with Go.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "other suites use the rest")]
mod common;

mod address;
mod api;
mod cloud;
mod cluster;
mod handover;
mod helm;
mod keys;
mod log_lines;
mod machine;
mod namespace;
mod path;
mod plane;
mod program;
mod release;
mod replica;
mod scene;
mod secret;
mod suite;
mod wait;

mod attach;
mod failures;
mod fenced;
mod manifests;
mod modify;
mod provision;
mod retain;
mod rights;
mod snapshot;
mod stock;
mod upgrade;
mod use_cases;

fn main() -> std::process::ExitCode {
    let parallel = suite::scenarios![
        // The longest scenario starts first.
        "examples" => use_cases::work,
        "immediate" => provision::immediate,
        "first-consumer" => provision::first_consumer,
        "three-zones" => provision::three_zones,
        "elsewhere" => stock::elsewhere,
        "fallback" => stock::fallback,
        "retained" => retain::retained,
        "by-id" => retain::by_id,
        "moved" => attach::moved,
        "shared" => attach::shared,
        "limit" => attach::limit,
        "node-deleted" => attach::node_deleted,
        "fenced" => fenced::stopped,
        "restored" => snapshot::restored,
        "group" => snapshot::group,
        "clone" => snapshot::clone,
        "expanded" => modify::expanded,
        "modified" => modify::modified,
        "renders" => manifests::renders,
        "probes" => manifests::probes,
        "secrets" => rights::secrets,
    ];
    let serial = suite::scenarios![
        "leader-stopped" => handover::leader_stopped,
        "leader-killed" => handover::leader_killed,
        "pods-restarted" => handover::pods_restarted,
        "upgraded" => upgrade::upgraded_in_use,
        "key-rotated" => failures::key_rotated,
        // An API server that has just started denies requests until its RBAC cache is filled.
        "used" => rights::used,
        "apiserver-restarted" => failures::apiserver_restarted,
        "apiserver-away" => handover::apiserver_unavailable,
    ];
    suite::run(vec![parallel, serial])
}
