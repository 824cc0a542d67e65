//! Shared by the test binaries: processes under test, the fake cloud in memory, volumes and their expected state.

pub(crate) mod archive;
pub(crate) mod csi;
pub(crate) mod ecs;
pub(crate) mod expected;
pub(crate) mod failure_table;
pub(crate) mod fake;
pub(crate) mod findings;
pub(crate) mod lifecycle;
pub(crate) mod loop_device;
pub(crate) mod machine;
pub(crate) mod memory_cloud;
pub(crate) mod oidc;
pub(crate) mod plan;
pub(crate) mod process;
pub(crate) mod recording_proxy;
pub(crate) mod request;
pub(crate) mod rng;
pub(crate) mod shell;
pub(crate) mod sidecar;
pub(crate) mod state;
pub(crate) mod wait;
