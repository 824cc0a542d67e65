//! Mount options: what is accepted reads the same again, and denied options never reach the kernel.

use diskplugin::model::MountFlags;

/// Lines, each an entry of `mount_flags`.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let entries: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let Ok(flags) = MountFlags::new(entries) else {
        return;
    };
    let own: Vec<String> = flags.iter().map(str::to_owned).collect();
    assert_eq!(MountFlags::new(own.clone()).as_ref(), Ok(&flags));
    let joined = flags.to_string();
    if !joined.is_empty() {
        assert_eq!(MountFlags::new([joined]).as_ref(), Ok(&flags));
    }
    let has = |name: &str| own.iter().any(|flag| flag == name);
    assert!(!(has("ro") && has("rw")), "{own:?}");
    for flag in &own {
        let name = flag.split('=').next().unwrap_or_default();
        let denied = [
            "nobarrier",
            "remount",
            "bind",
            "loop",
            "degraded",
            "logdev",
            "journal_dev",
            "device",
            "abort",
        ];
        assert!(
            !denied.contains(&name) && flag != "errors=panic" && flag != "data=writeback",
            "{flag:?}"
        );
        assert!(!flag.contains(char::is_control) && !flag.is_empty(), "{flag:?}");
        assert!(!flag.contains(',') || flag.contains('"'), "{flag:?}");
    }
    let skips = ["noload", "norecovery", "nologreplay"].into_iter().any(has);
    assert!(!skips || flags.check_writable().is_err());
}
