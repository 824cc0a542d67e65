//! What `cloud::Ecs` promises, held against every implementation: the fake cloud in memory, and the
//! real client over HTTP with either signature, on a `wiremock::MockServer` with the fake cloud mounted. Where two of them
//! differ, one of them is wrong.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

/// Runs each contract on each face. The functions stand beside modules of the same names, so a test
/// is called `disks::a_new_disk_becomes_available_later::over_http_v1`.
macro_rules! on_every_face {
    ($($contract:ident),* $(,)?) => { $(
        mod $contract {
            use crate::world::{Face, World};

            #[tokio::test]
            async fn in_memory() {
                let world = World::open(Face::Memory).await;
                super::$contract(&*world.ecs, &world).await;
            }

            #[tokio::test]
            async fn over_http_v1() {
                let world = World::open(Face::HTTP_V1).await;
                super::$contract(&*world.ecs, &world).await;
            }

            #[tokio::test]
            async fn over_http_v3() {
                let world = World::open(Face::HTTP_V3).await;
                super::$contract(&*world.ecs, &world).await;
            }
        }
    )* };
}

mod attachments;
mod attempts;
mod disks;
mod ephemeral;
mod errors;
mod groups;
mod health;
mod lag;
mod machines;
mod market;
mod offers;
mod pages;
mod shares;
mod sharing;
mod sizes;
mod snapshots;
mod specs;
mod story;
mod tags;
#[path = "../common/wiremock_cloud.rs"]
mod wiremock_cloud;
mod world;
