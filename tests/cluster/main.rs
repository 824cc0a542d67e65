//! The driver in a real Kubernetes, as far as that goes without kubelet: control plane and sidecars on loopback, the
//! chart installed by Helm, `diskplugin controller` on the fake cloud, nodes that are objects only.
//!
//! All scenarios share one cluster. Those that disturb others come after the others, one at a time; at last it is
//! looked at which rights were used. Needs what `scripts/setup test` builds, and that needs Go.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "other suites use the rest")]
mod common;

mod address;
mod api;
mod chosen;
mod cloud;
mod cluster;
mod helm;
mod keys;
mod machine;
mod namespace;
mod path;
mod patience;
mod plane;
mod program;
mod release;
mod replica;
mod scene;
mod secret;
mod suite;

mod attach;
mod disturb;
mod grow;
mod keep;
mod manifests;
mod provision;
mod rights;
mod snapshot;
mod stock;
mod upgrade;
mod use_cases;

fn main() -> std::process::ExitCode {
    let together = suite::scenarios![
        // It takes the longest.
        "examples" => use_cases::work,
        "immediate" => provision::immediate,
        "first-consumer" => provision::first_consumer,
        "three-zones" => provision::three_zones,
        "elsewhere" => stock::elsewhere,
        "fallback" => stock::fallback,
        "retained" => keep::retained,
        "by-id" => keep::by_id,
        "moved" => attach::moved,
        "shared" => attach::shared,
        "limit" => attach::limit,
        "node-deleted" => attach::node_deleted,
        "restored" => snapshot::restored,
        "group" => snapshot::group,
        "clone" => snapshot::clone,
        "expanded" => grow::expanded,
        "modified" => grow::modified,
        "renders" => manifests::renders,
        "probes" => manifests::probes,
        "secrets" => rights::secrets,
    ];
    let alone = suite::scenarios![
        "leader-killed" => disturb::leader_killed,
        "upgraded" => upgrade::upgraded_in_use,
        "key-rotated" => disturb::key_rotated,
        // An API server that has just started knows of no rights for a moment.
        "used" => rights::used,
        "apiserver-restarted" => disturb::apiserver_restarted,
    ];
    suite::run(vec![together, alone])
}
