//! Processes under test: start, observe, call and stop them.

pub(crate) mod archive;
pub(crate) mod csi;
pub(crate) mod ecs;
pub(crate) mod fake;
pub(crate) mod machine;
pub(crate) mod oidc;
pub(crate) mod process;
pub(crate) mod recording_proxy;
pub(crate) mod wait;
