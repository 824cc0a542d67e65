//! Publishing.

use super::*;

#[test]
fn a_device_is_not_published_while_its_filesystem_is_mounted() {
    let mut seen = published(path_state("/target", Entry::Missing, None), None);
    let wanted = Wanted {
        access: &Access::Block,
        read_only: true,
        locked: false,
    };
    assert!(publish(wanted, false, &seen).is_ok());
    seen.staged = vec![mount_of(&seen.device, "/staging", "rw")];
    let refused = publish(wanted, false, &seen).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "/dev/vdb (254:16) is mounted at /staging"
    );
}

#[test]
fn a_target_is_made_bound_and_made_read_only_where_asked() {
    let seen = published(path_state("/target", Entry::Missing, None), Some("rw"));
    let plan = |read_only| publish(wanted(&ext4(), read_only), false, &seen).unwrap();
    assert_eq!(names(&plan(false)), ["mkdir", "bind"]);
    assert_eq!(names(&plan(true)), ["mkdir", "bind", "remount-ro"]);
}

#[test]
fn publishing_what_is_not_staged_so_is_refused() {
    let target = || path_state("/target", Entry::Missing, None);
    let not_staged = publish(wanted(&ext4(), false), false, &published(target(), None));
    assert!(matches!(not_staged, Err(Refusal::NotStaged { .. })));
    let staged_ro = published(target(), Some("ro"));
    let writable = publish(wanted(&ext4(), false), false, &staged_ro);
    assert!(matches!(writable, Err(Refusal::StagedReadOnly { .. })));
    assert!(publish(wanted(&ext4(), true), false, &staged_ro).is_ok());
}

#[test]
fn a_read_only_target_that_was_left_writable_half_way_is_made_read_only() {
    let device = disk("vdb", 16, "bp1");
    let at = |options| {
        let mount = mount_of(&device, "/target", options);
        published(
            path_state("/target", Entry::Directory, Some(mount)),
            Some("rw"),
        )
    };
    let plan = |options, read_only| publish(wanted(&ext4(), read_only), false, &at(options));
    assert_eq!(names(&plan("rw", true).unwrap()), ["remount-ro"]);
    assert_eq!(plan("rw", false), Ok(Vec::new()));
    assert_eq!(plan("ro", true), Ok(Vec::new()));
    assert!(matches!(
        plan("ro", false),
        Err(Refusal::Incompatible { .. })
    ));
}

#[test]
fn a_device_is_published_one_way_at_a_time() {
    let target = path_state("/target", Entry::Missing, None);
    let mut seen = published(target, None);
    let plan = |seen: &PublishSeen, ro| publish(wanted(&Access::Block, ro), false, seen);
    assert_eq!(
        names(&plan(&seen, true).unwrap()),
        ["setro", "touch", "bind-device", "remount-ro"]
    );
    assert_eq!(
        names(&plan(&seen, false).unwrap()),
        ["touch", "bind-device"]
    );
    seen.others = vec![mount_of(&seen.device, "/other", "rw")];
    assert!(matches!(
        plan(&seen, true),
        Err(Refusal::MixedAccess { .. })
    ));
    assert!(plan(&seen, false).is_ok());
}

/// kubelet binds the target to a place of its own, and its mount(8) leaves "ro" out there.
#[test]
fn a_read_only_device_is_published_again_and_elsewhere_however_others_have_bound_it() {
    let mut seen = published(path_state("/target", Entry::Missing, None), None);
    seen.device.read_only = true;
    seen.others = vec![
        mount_of(&seen.device, "/publish/one", "ro"),
        mount_of(&seen.device, "/dev/one", "rw"),
    ];
    let plan = |seen: &PublishSeen, ro| publish(wanted(&Access::Block, ro), false, seen);
    assert_eq!(
        names(&plan(&seen, true).unwrap()),
        ["touch", "bind-device", "remount-ro"]
    );
    let writable = plan(&seen, false).unwrap_err();
    assert_eq!(
        writable.to_string(),
        "the device is published read-only at /publish/one, and a device is one or the other as a whole"
    );
    let mount = mount_of(&seen.device, "/target", "ro");
    seen.target = path_state("/target", Entry::Block(seen.device.number), Some(mount));
    assert_eq!(plan(&seen, true), Ok(Vec::new()));
}

#[test]
fn a_target_gets_the_flags_that_staging_has_not() {
    let access = Access::Mount {
        filesystem: Ext4,
        flags: MountFlags::new(["noexec", "nodev"].map(str::to_owned)).unwrap(),
    };
    let plan = |seen: &PublishSeen| publish(wanted(&access, false), false, seen);
    let seen = published(path_state("/target", Entry::Directory, None), None);
    let mut staged = mount_of(&seen.device, "/staging", "rw,noexec");
    let mut seen = PublishSeen {
        staging: path_state("/staging", Entry::Directory, Some(staged.clone())),
        ..seen
    };
    let steps = plan(&seen).unwrap();
    assert_eq!(names(&steps), ["bind", "restrict"]);
    assert_eq!(
        steps[1],
        Step::Restrict {
            target: "/target".into(),
            flags: MountFlags::new(["nodev".to_owned()]).unwrap()
        }
    );
    // An earlier call may have ended between the two.
    staged.point = "/target".into();
    seen.target.mount = Some(staged.clone());
    assert_eq!(names(&plan(&seen).unwrap()), ["restrict"]);
    staged.options = "rw,nodev,noexec".to_owned();
    seen.target.mount = Some(staged);
    assert_eq!(plan(&seen), Ok(Vec::new()));
}
