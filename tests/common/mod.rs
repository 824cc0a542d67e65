//! Shared by the test binaries: processes under test, the fake cloud in memory, volumes and their expected state.

/// A test for each row: its name, and the arguments of the async function that it runs.
#[allow(unused_macros, reason = "some test binaries use it")]
macro_rules! rows {
    ($run:ident: $($name:ident($($argument:expr),*),)*) => { $(
        #[tokio::test]
        async fn $name() {
            $run($($argument),*).await;
        }
    )* };
}
#[allow(unused_imports, reason = "some test binaries use it")]
pub(crate) use rows;

pub(crate) mod archive;
pub(crate) mod csi;
pub(crate) mod disk;
pub(crate) mod ecs;
pub(crate) mod expected;
pub(crate) mod failure_table;
pub(crate) mod fake;
pub(crate) mod findings;
pub(crate) mod lifecycle;
pub(crate) mod loop_device;
pub(crate) mod machine;
pub(crate) mod memory_cloud;
pub(crate) mod mounts;
pub(crate) mod oidc;
pub(crate) mod plan;
pub(crate) mod process;
pub(crate) mod recording_proxy;
pub(crate) mod request;
pub(crate) mod rng;
pub(crate) mod shell;
pub(crate) mod sidecar;
pub(crate) mod state;
pub(crate) mod volume;
pub(crate) mod wait;
