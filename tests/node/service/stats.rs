//! Volume statistics.

use std::fs;

use tonic::Code;

use crate::service::kit::{NodeVolume, World, assert_fails};

#[tokio::test]
async fn a_path_without_the_volume_is_not_found() {
    let Some(world) = World::new("ext4").await else { return };
    fs::create_dir(world.path("empty")).unwrap();
    assert_fails(world.at("empty").stats().await, Code::NotFound, &[]);
    assert_fails(world.at("nowhere").stats().await, Code::NotFound, &[]);
    assert_fails(world.at("empty").with(None).expand(0).await, Code::NotFound, &[]);
    let relative = NodeVolume {
        target: "some/path".to_owned(),
        ..world.clone()
    };
    assert_fails(relative.stats().await, Code::NotFound, &[]);
}
