//! Manual mappings of devices without a serial: `diskplugin map`, its records, and staging.

use diskplugin::base::Deadline;
use diskplugin::host::{Command, Exec, Output, ProcessExec};
use tonic::Code;

use crate::kit::{LONG_TIMEOUT, SHORT_TIMEOUT, World, can_run, is_mounted, sh, writer_capability};
use crate::loop_device::{attach_command, detach_command};

/// Attaches the disk without the symlink of its serial.
async fn attach_without_link(world: &World) -> String {
    sh(&attach_command(&world.image())).await
}

async fn run_map(world: &World, args: &[&str]) -> Output {
    let state = world.text("state");
    let command = Command::new(env!("CARGO_BIN_EXE_diskplugin"))
        .args(["map", "--state-dir", &state])
        .args(args);
    ProcessExec
        .run(&command, Deadline::after(LONG_TIMEOUT))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_mapping_is_valid_until_the_device_is_removed() {
    if !can_run().await {
        return;
    }
    let world = World::without_device("nodeloop53");
    let (volume, capability) = (world.volume(), writer_capability("ext4"));
    let device = attach_without_link(&world).await;
    // The mapping is created while the node waits.
    let args = [volume.as_str(), device.as_str()];
    let (staged, mapped) = tokio::join!(world.stage(&capability), run_map(&world, &args));
    assert_eq!(mapped.code, Some(0), "{mapped:?}");
    staged.unwrap();
    assert!(is_mounted(&world.path("staging")));

    let second = run_map(&world, &["d-another", &device]).await;
    assert_ne!(second.code, Some(0));
    assert!(
        second.stderr.contains(&format!("disk {volume}")),
        "{second:?}"
    );
    assert!(
        run_map(&world, &["--list"])
            .await
            .stdout
            .contains(": valid\n")
    );

    world.unstage().await.unwrap();
    assert!(!is_mounted(&world.path("staging")));
    sh(&detach_command(&device)).await;
    let device = attach_without_link(&world).await;
    let error = world
        .stage_within(SHORT_TIMEOUT, &capability)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
    assert!(
        error.message().contains("which has been removed since"),
        "{error}"
    );
    let listed = run_map(&world, &["--list"]).await;
    assert!(listed.stdout.contains(": invalid: "), "{listed:?}");
    sh(&detach_command(&device)).await;
}

#[tokio::test]
async fn a_mounted_device_cannot_be_mapped() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop52").await;
    world.stage(&writer_capability("ext4")).await.unwrap();
    let device = world.device().display().to_string();
    let rejected = run_map(&world, &["d-another", &device]).await;
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert!(rejected.stderr.contains("is in use"), "{rejected:?}");
    let output = run_map(&world, &["--list"]).await.stdout;
    assert!(output.starts_with("no mappings in "), "{output}");
    // The kernel reports the use also in a mount namespace without the mount.
    let binary = env!("CARGO_BIN_EXE_diskplugin");
    let (state, staging) = (world.text("state"), world.text("staging"));
    let map_command = format!("{binary} map --state-dir {state} d-another {device} 2>&1");
    let line = format!("unshare -m sh -c 'umount {staging}; {map_command}' || true");
    let hidden = sh(&line).await;
    assert!(hidden.contains("is in use"), "{hidden}");
    world.unstage().await.unwrap();
}
