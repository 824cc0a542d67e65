//! Tests of publishing.

use super::*;

#[test]
fn publishing_a_block_device_fails_while_its_filesystem_is_mounted() {
    let mut observed = publish_observation(Entry::Missing, None);
    assert!(publish(&Access::Block, true, &observed).is_ok());
    observed.filesystem_mounts = vec![mount_of(&observed.device, "/staging", "rw")];
    assert_eq!(
        outcome(publish(&Access::Block, true, &observed)),
        "/dev/vdb (254:16) is mounted at /staging"
    );
}

#[test]
fn publish_creates_binds_and_remounts_the_target() {
    let observed = publish_observation(Entry::Missing, Some("rw"));
    for (read_only, steps) in [(false, "make-directory bind"), (true, "make-directory bind remount-ro")] {
        assert_eq!(outcome(publish(&ext4(), read_only, &observed)), steps);
    }
}

#[test]
fn publishing_fails_if_not_staged_or_staged_read_only() {
    let not_staged = publish(&ext4(), false, &publish_observation(Entry::Missing, None));
    assert_error(&not_staged, Failure::NotStaged, "is not staged at /staging");
    let staged_ro = publish_observation(Entry::Missing, Some("ro"));
    let writable = publish(&ext4(), false, &staged_ro);
    let part = "is staged read-only at /staging";
    assert_error(&writable, Failure::AccessModeConflict, part);
    assert!(publish(&ext4(), true, &staged_ro).is_ok());
}

#[test]
fn a_filesystem_is_not_used_again_after_an_error() {
    const REMOUNTED: (Failure, &str) = (Failure::RemountedReadOnly, "at /staging read-only after an error");
    const SHUT_DOWN: (Failure, &str) = (Failure::FilesystemShutDown, "at /staging has shut down");
    for (super_options, rejects_writes, dead, (failure, part)) in [
        ("ro,errors=remount-ro", false, false, REMOUNTED),
        ("rw,emergency_ro", false, false, REMOUNTED),
        // The mount table does not show it.
        ("rw", true, false, REMOUNTED),
        ("rw", false, true, SHUT_DOWN),
        ("rw,shutdown", false, false, SHUT_DOWN),
    ] {
        let mut observed = publish_observation(Entry::Missing, Some("rw"));
        observed.rejects_writes = rejects_writes;
        observed.staging.dead = dead;
        observed.staging.mount.as_mut().unwrap().super_options = super_options.to_owned();
        assert_error(&publish(&ext4(), false, &observed), failure, part);
        let read_only = publish(&ext4(), true, &observed);
        match failure {
            Failure::FilesystemShutDown => assert_error(&read_only, failure, part),
            _ => assert!(read_only.is_ok(), "{read_only:?}"),
        }
    }
}

#[test]
fn publishing_again_completes_an_interrupted_read_only_remount() {
    let plan = |options, read_only| {
        let mut observed = publish_observation(Entry::Directory, Some("rw"));
        observed.target.mount = Some(mount_of(&observed.device, "/target", options));
        publish(&ext4(), read_only, &observed)
    };
    assert_eq!(outcome(plan("rw", true)), "remount-ro");
    assert_eq!(plan("rw", false), Ok(Vec::new()));
    assert_eq!(plan("ro", true), Ok(Vec::new()));
    let part = "at /target read-only, but writable";
    assert_error(&plan("ro", false), Failure::StagingConflict, part);
}

#[test]
fn all_targets_of_a_block_device_share_its_access() {
    let mut observed = publish_observation(Entry::Missing, None);
    let plan = |observed: &PublishObservation, ro| publish(&Access::Block, ro, observed);
    assert_eq!(outcome(plan(&observed, true)), "setro make-file bind-device remount-ro");
    assert_eq!(outcome(plan(&observed, false)), "make-file bind-device");
    observed.other_targets = vec![mount_of(&observed.device, "/other", "rw")];
    assert_error(&plan(&observed, true), Failure::AccessModeConflict, "share its access");
    assert!(plan(&observed, false).is_ok());
}

/// kubelet bind-mounts the target at a further path, without the option "ro".
#[test]
fn mount_options_of_other_bind_mounts_do_not_affect_a_block_device() {
    let mut observed = publish_observation(Entry::Missing, None);
    observed.device.read_only = true;
    observed.other_targets = vec![
        mount_of(&observed.device, "/publish/one", "ro"),
        mount_of(&observed.device, "/dev/one", "rw"),
    ];
    let plan = |observed: &PublishObservation, ro| publish(&Access::Block, ro, observed);
    assert_eq!(outcome(plan(&observed, true)), "make-file bind-device remount-ro");
    assert_eq!(
        outcome(plan(&observed, false)),
        "the device is published read-only at /publish/one, and all target paths of a device share its access"
    );
    let mount = mount_of(&observed.device, "/target", "ro");
    observed.target = path_state("/target", Entry::BlockDevice(observed.device.number), Some(mount));
    assert_eq!(plan(&observed, true), Ok(Vec::new()));
}

#[test]
fn publish_adds_mount_options_that_the_staging_mount_lacks() {
    let access = mount_access(Ext4, "noexec,nodev");
    let mut observed = publish_observation(Entry::Directory, Some("rw,noexec"));
    let steps = publish(&access, false, &observed).unwrap();
    let restrict = Step::Restrict {
        target: "/target".into(),
        flags: MountFlags::new(["nodev".to_owned()]).unwrap(),
    };
    assert_eq!(steps[1], restrict);
    assert_eq!(outcome(Ok(steps)), "bind restrict");
    // An earlier call may have been interrupted between the two steps.
    for (options, steps) in [("rw,noexec", "restrict"), ("rw,nodev,noexec", "")] {
        observed.target.mount = Some(mount_of(&observed.device, "/target", options));
        assert_eq!(outcome(publish(&access, false, &observed)), steps);
    }
    observed.target.mount = Some(mount_of(&observed.device, "/target", "rw,noexec"));
    let restrict = Step::Restrict {
        target: "/target".into(),
        flags: MountFlags::new(["nodev".to_owned(), "ro".to_owned()]).unwrap(),
    };
    assert_eq!(publish(&access, true, &observed), Ok(vec![restrict]));
}

#[test]
fn a_target_is_at_least_as_strict_as_the_staging_mount() {
    for (flags, expected) in [
        ("noexec,discard", Some("bind")),
        ("exec,noexec", Some("bind")),
        ("noatime,atime", Some("bind")),
        ("nosymfollow", Some("bind restrict")),
        ("noexec,exec", None),
    ] {
        let observed = publish_observation(Entry::Directory, Some("rw,noexec,relatime"));
        let plan = publish(&mount_access(Ext4, flags), false, &observed);
        assert_eq!(plan.is_ok(), expected.is_some(), "{flags}");
        assert!(expected.is_none_or(|steps| outcome(plan) == steps), "{flags}");
    }
}
