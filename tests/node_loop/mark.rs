//! A disk that only a person's word leads to: the command, the record, the node.

use diskplugin::base::Deadline;
use diskplugin::host::{Command, Exec, Output, Processes};
use tonic::Code;

use crate::kit::{AMPLE, BRIEF, World, can_run, is_mounted, sh, writer};
use crate::loop_device::{attach_command, detach_command};

/// Attaches the disk without the fake cloud's link: nothing tells the node what it is.
async fn attach_unnamed(world: &World) -> String {
    sh(&attach_command(&world.image())).await
}

async fn mark(world: &World, args: &[&str]) -> Output {
    let state = world.text("state");
    let command = Command::new(env!("CARGO_BIN_EXE_diskplugin"))
        .args(["map", "--state-dir", &state])
        .args(args);
    Processes
        .run(&command, Deadline::after(AMPLE))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_marked_device_is_its_disk_until_it_leaves() {
    if !can_run().await {
        return;
    }
    let world = World::without_device("nodeloop53");
    let (volume, capability) = (world.volume(), writer("ext4"));
    let device = attach_unnamed(&world).await;
    // Said while the node waits.
    let args = [volume.as_str(), device.as_str()];
    let (staged, said) = tokio::join!(world.stage(&capability), mark(&world, &args));
    assert_eq!(said.code, Some(0), "{said:?}");
    staged.unwrap();
    assert!(is_mounted(&world.path("staging")));

    let twin = mark(&world, &["d-another", &device]).await;
    assert_ne!(twin.code, Some(0));
    assert!(twin.stderr.contains(&format!("disk {volume}")), "{twin:?}");
    assert!(mark(&world, &["--list"]).await.stdout.contains(": valid\n"));

    world.unstage().await.unwrap();
    assert!(!is_mounted(&world.path("staging")));
    sh(&detach_command(&device)).await;
    let device = attach_unnamed(&world).await;
    let error = world.stage_within(BRIEF, &capability).await.unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
    assert!(error.message().contains("which has left since"), "{error}");
    let listed = mark(&world, &["--list"]).await;
    assert!(listed.stdout.contains(": invalid: "), "{listed:?}");
    sh(&detach_command(&device)).await;
}

#[tokio::test]
async fn a_device_that_is_mounted_cannot_be_marked() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop52").await;
    world.stage(&writer("ext4")).await.unwrap();
    let device = world.device().display().to_string();
    let refused = mark(&world, &["d-another", &device]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("is in use"), "{refused:?}");
    let none = mark(&world, &["--list"]).await.stdout;
    assert!(none.starts_with("no mappings in "), "{none}");
    // In a mount namespace where nobody sees the mount, the kernel knows it all the same.
    let binary = env!("CARGO_BIN_EXE_diskplugin");
    let (state, staging) = (world.text("state"), world.text("staging"));
    let marked = format!("{binary} map --state-dir {state} d-another {device} 2>&1");
    let line = format!("unshare -m sh -c 'umount {staging}; {marked}' || true");
    let hidden = sh(&line).await;
    assert!(hidden.contains("is in use"), "{hidden}");
    world.unstage().await.unwrap();
}
