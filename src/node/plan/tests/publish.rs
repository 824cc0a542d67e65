//! Tests of publishing.

use super::*;

#[test]
fn publishing_a_block_device_fails_while_its_filesystem_is_mounted() {
    let mut observed = publish_observation(path_state("/target", Entry::Missing, None), None);
    let requested = RequestedAccess {
        access: &Access::Block,
        read_only: true,
        device_read_only: false,
    };
    assert!(publish(requested, false, &observed).is_ok());
    observed.filesystem_mounts = vec![mount_of(&observed.device, "/staging", "rw")];
    let error = publish(requested, false, &observed).unwrap_err();
    assert_eq!(error.to_string(), "/dev/vdb (254:16) is mounted at /staging");
}

#[test]
fn publish_creates_binds_and_remounts_the_target() {
    let observed = publish_observation(path_state("/target", Entry::Missing, None), Some("rw"));
    let plan = |read_only| publish(requested(&ext4(), read_only), false, &observed).unwrap();
    assert_eq!(step_names(&plan(false)), ["make-directory", "bind"]);
    assert_eq!(step_names(&plan(true)), ["make-directory", "bind", "remount-ro"]);
}

#[test]
fn publishing_fails_if_not_staged_or_staged_read_only() {
    let target = || path_state("/target", Entry::Missing, None);
    let not_staged = publish(requested(&ext4(), false), false, &publish_observation(target(), None));
    assert_error(&not_staged, Failure::NotStaged, "is not staged at /staging");
    let staged_ro = publish_observation(target(), Some("ro"));
    let writable = publish(requested(&ext4(), false), false, &staged_ro);
    assert_error(
        &writable,
        Failure::AccessModeConflict,
        "is staged read-only at /staging",
    );
    assert!(publish(requested(&ext4(), true), false, &staged_ro).is_ok());
}

#[test]
fn a_filesystem_that_the_kernel_remounted_read_only_is_not_used_again() {
    for super_options in ["ro,errors=remount-ro", "rw,emergency_ro"] {
        let target = path_state("/target", Entry::Missing, None);
        let mut observed = publish_observation(target, Some("rw"));
        let mut mount = observed.staging.mount.take().unwrap();
        mount.super_options = super_options.to_owned();
        observed.staging.mount = Some(mount.clone());
        let published = publish(requested(&ext4(), false), false, &observed);
        assert_error(
            &published,
            Failure::RemountedReadOnly,
            "at /staging read-only after an error",
        );
        assert!(publish(requested(&ext4(), true), false, &observed).is_ok());
    }
    // The mount table does not show it.
    let observed = PublishObservation {
        rejects_writes: true,
        ..publish_observation(path_state("/target", Entry::Missing, None), Some("rw"))
    };
    let published = publish(requested(&ext4(), false), false, &observed);
    assert_error(
        &published,
        Failure::RemountedReadOnly,
        "at /staging read-only after an error",
    );
}

#[test]
fn a_filesystem_that_has_shut_down_is_not_used_again() {
    let target = || path_state("/target", Entry::Missing, None);
    let mut dead = publish_observation(target(), Some("rw"));
    dead.staging.dead = true;
    let mut shut_down = publish_observation(target(), Some("rw"));
    let mut mount = shut_down.staging.mount.take().unwrap();
    mount.super_options = "rw,shutdown".to_owned();
    shut_down.staging.mount = Some(mount);
    for observed in [dead, shut_down] {
        for read_only in [false, true] {
            let published = publish(requested(&ext4(), read_only), false, &observed);
            assert_error(&published, Failure::FilesystemShutDown, "at /staging has shut down");
        }
    }
}

#[test]
fn publishing_again_completes_an_interrupted_read_only_remount() {
    let device = disk("vdb", 16, "bp1");
    let at = |options| {
        let mount = mount_of(&device, "/target", options);
        publish_observation(path_state("/target", Entry::Directory, Some(mount)), Some("rw"))
    };
    let plan = |options, read_only| publish(requested(&ext4(), read_only), false, &at(options));
    assert_eq!(step_names(&plan("rw", true).unwrap()), ["remount-ro"]);
    assert_eq!(plan("rw", false), Ok(Vec::new()));
    assert_eq!(plan("ro", true), Ok(Vec::new()));
    assert_error(
        &plan("ro", false),
        Failure::StagingConflict,
        "at /target read-only, but writable",
    );
}

#[test]
fn all_targets_of_a_block_device_share_its_access() {
    let target = path_state("/target", Entry::Missing, None);
    let mut observed = publish_observation(target, None);
    let plan = |observed: &PublishObservation, ro| publish(requested(&Access::Block, ro), false, observed);
    assert_eq!(
        step_names(&plan(&observed, true).unwrap()),
        ["setro", "make-file", "bind-device", "remount-ro"]
    );
    assert_eq!(
        step_names(&plan(&observed, false).unwrap()),
        ["make-file", "bind-device"]
    );
    observed.other_targets = vec![mount_of(&observed.device, "/other", "rw")];
    assert_error(&plan(&observed, true), Failure::AccessModeConflict, "share its access");
    assert!(plan(&observed, false).is_ok());
}

/// kubelet bind-mounts the target at a further path, without the option "ro".
#[test]
fn mount_options_of_other_bind_mounts_do_not_affect_a_block_device() {
    let mut observed = publish_observation(path_state("/target", Entry::Missing, None), None);
    observed.device.read_only = true;
    observed.other_targets = vec![
        mount_of(&observed.device, "/publish/one", "ro"),
        mount_of(&observed.device, "/dev/one", "rw"),
    ];
    let plan = |observed: &PublishObservation, ro| publish(requested(&Access::Block, ro), false, observed);
    assert_eq!(
        step_names(&plan(&observed, true).unwrap()),
        ["make-file", "bind-device", "remount-ro"]
    );
    let writable = plan(&observed, false).unwrap_err();
    assert_eq!(
        writable.to_string(),
        "the device is published read-only at /publish/one, and all target paths of a device share its access"
    );
    let mount = mount_of(&observed.device, "/target", "ro");
    observed.target = path_state("/target", Entry::BlockDevice(observed.device.number), Some(mount));
    assert_eq!(plan(&observed, true), Ok(Vec::new()));
}

#[test]
fn publish_adds_mount_options_that_the_staging_mount_lacks() {
    let access = Access::Mount {
        filesystem: Ext4,
        flags: MountFlags::new(["noexec", "nodev"].map(str::to_owned)).unwrap(),
    };
    let plan = |observed: &PublishObservation| publish(requested(&access, false), false, observed);
    let observed = publish_observation(path_state("/target", Entry::Directory, None), None);
    let mut staged = mount_of(&observed.device, "/staging", "rw,noexec");
    let mut observed = PublishObservation {
        staging: path_state("/staging", Entry::Directory, Some(staged.clone())),
        ..observed
    };
    let steps = plan(&observed).unwrap();
    assert_eq!(step_names(&steps), ["bind", "restrict"]);
    assert_eq!(
        steps[1],
        Step::Restrict {
            target: "/target".into(),
            flags: MountFlags::new(["nodev".to_owned()]).unwrap()
        }
    );
    // An earlier call may have been interrupted between the two steps.
    staged.point = "/target".into();
    observed.target.mount = Some(staged.clone());
    assert_eq!(step_names(&plan(&observed).unwrap()), ["restrict"]);
    staged.options = "rw,nodev,noexec".to_owned();
    observed.target.mount = Some(staged);
    assert_eq!(plan(&observed), Ok(Vec::new()));
}

#[test]
fn a_target_is_at_least_as_strict_as_the_staging_mount() {
    for (requested_flags, expected) in [
        ("noexec,discard", Some(&["bind"][..])),
        ("exec,noexec", Some(&["bind"])),
        ("noatime,atime", Some(&["bind"])),
        ("nosymfollow", Some(&["bind", "restrict"])),
        ("noexec,exec", None),
    ] {
        let access = Access::Mount {
            filesystem: Ext4,
            flags: MountFlags::new([requested_flags.to_owned()]).unwrap(),
        };
        let mut observed = publish_observation(path_state("/target", Entry::Directory, None), None);
        let staged = mount_of(&observed.device, "/staging", "rw,noexec,relatime");
        observed.staging = path_state("/staging", Entry::Directory, Some(staged));
        let steps = publish(requested(&access, false), false, &observed).ok();
        let names = steps.map(|steps| step_names(&steps));
        assert_eq!(names.as_deref(), expected, "{requested_flags}");
    }
}
