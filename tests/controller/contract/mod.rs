//! Each action of the client on the fake cloud: in memory, and over HTTP with both signature versions, on a
//! `wiremock::MockServer` that serves the fake cloud.

/// A contract: a test over each connection, such as
/// `disks::a_new_disk_becomes_available_after_its_delay::over_http_v1`.
macro_rules! contract {
    ($contract:ident, |$ecs:ident, $world:pat_param| $body:block) => {
        async fn $contract($ecs: &Client, $world: &World) $body

        mod $contract {
            use crate::contract::world::{Connection, World};

            #[tokio::test]
            async fn in_memory() {
                let world = World::open(Connection::Memory).await;
                super::$contract(&world.ecs, &world).await;
            }

            #[tokio::test]
            async fn over_http_v1() {
                let world = World::open(Connection::HTTP_V1).await;
                super::$contract(&world.ecs, &world).await;
            }

            #[tokio::test]
            async fn over_http_v3() {
                let world = World::open(Connection::HTTP_V3).await;
                super::$contract(&world.ecs, &world).await;
            }
        }
    };
}

mod attachments;
mod attempts;
mod disk_options;
mod disks;
mod ephemeral;
mod errors;
mod fault_percentage;
mod groups;
mod health;
mod instances;
mod lag;
mod loop_devices;
mod modify;
mod modify_rejections;
mod multi_attach;
mod pages;
mod resize;
mod snapshots;
mod stock;
mod tags;
mod virtual_time;
mod world;
