//! Whole processes under test: how they are started, watched, spoken to and ended.

pub(crate) mod csi;
pub(crate) mod fake;
pub(crate) mod machine;
pub(crate) mod oidc;
pub(crate) mod process;
pub(crate) mod tee;
pub(crate) mod wait;
