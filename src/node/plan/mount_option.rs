//! Compares the options of a mount with the requested ones. Options of a single mount, such as `noexec`, may be
//! stricter at a target than at the staging path; options of the filesystem are the same at all its mounts. kubelet
//! passes all of them to both calls.

use super::common::incompatible;
use super::{PathState, PlanError};
use crate::host::Mount;
use crate::model::{MountFlags, SelinuxLabel};

/// Restrictive options of a mount, and their opposites.
const RESTRICTIVE: [(&str, &str); 5] = [
    ("nosuid", "suid"),
    ("nodev", "dev"),
    ("noexec", "exec"),
    ("noatime", "atime"),
    ("nodiratime", "diratime"),
];

/// Options with an SELinux label for all files of a filesystem (mount(8)).
const SELINUX_OPTIONS: [&str; 4] = ["context", "fscontext", "defcontext", "rootcontext"];

/// Returns the requested restrictive options that the mount does not have.
///
/// # Errors
/// A requested option contradicts one of the mount: a target is never less strict than the staging path.
pub(super) fn missing_options(
    flags: &MountFlags,
    mount: &Mount,
    path_state: &PathState,
) -> Result<MountFlags, PlanError> {
    let mut missing = Vec::new();
    for (restrictive, opposite) in RESTRICTIVE {
        let last = flags
            .iter()
            .rfind(|flag| [restrictive, opposite].contains(flag));
        let has = mount.has_option(restrictive);
        match last {
            Some(flag) if flag == restrictive && !has => missing.push(restrictive.to_owned()),
            Some(flag) if flag == opposite && has => {
                return Err(incompatible(path_state, restrictive.to_owned(), opposite));
            }
            Some(_) | None => {}
        }
    }
    Ok(MountFlags::new(missing).expect("constants are valid options"))
}

/// Checks that the filesystem has the requested SELinux labels. A request without labels accepts any.
pub(super) fn check_labels(
    flags: &MountFlags,
    mount: &Mount,
    path_state: &PathState,
) -> Result<(), PlanError> {
    for option in SELINUX_OPTIONS {
        let value = |text: &str| {
            let value = text.strip_prefix(option)?.strip_prefix('=')?;
            Some(SelinuxLabel::new(&value.replace('"', "")))
        };
        let Some(requested) = flags.iter().filter_map(value).next_back() else {
            continue;
        };
        let found = split_options(&mount.super_options)
            .into_iter()
            .find_map(value);
        if found.as_ref() != Some(&requested) {
            let found = found.map_or_else(
                || format!("without {option}"),
                |found| format!("with {option}=\"{found}\""),
            );
            return Err(incompatible(
                path_state,
                found,
                &format!("{option}=\"{requested}\""),
            ));
        }
    }
    Ok(())
}

/// Splits at commas outside quotation marks.
fn split_options(options: &str) -> Vec<&str> {
    let mut quoted = false;
    options
        .split(|c| {
            quoted ^= c == '"';
            c == ',' && !quoted
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Entry;
    use crate::host::fake::{disk, mount_of};

    fn flags(list: &[&str]) -> MountFlags {
        MountFlags::new(list.iter().map(|&flag| flag.to_owned())).unwrap()
    }

    fn path_state(mount: &Mount) -> PathState {
        PathState {
            path: "/staging".into(),
            entry: Entry::Directory,
            mount: Some(mount.clone()),
            dead: false,
        }
    }

    #[test]
    fn a_target_is_at_least_as_strict_as_the_staging_mount() {
        let mount = mount_of(&disk("vdb", 16, "bp1"), "/staging", "rw,noexec,relatime");
        for (requested, expected) in [
            (&[][..], Some("")),
            (&["noexec", "discard"], Some("")),
            (&["nodev", "noexec", "nosuid"], Some("nosuid,nodev")),
            (&["exec", "noexec"], Some("")),
            (&["noatime", "atime"], Some("")),
            (&["noexec", "exec"], None),
        ] {
            let missing = missing_options(&flags(requested), &mount, &path_state(&mount)).ok();
            let expected = expected.map(str::to_owned);
            assert_eq!(
                missing.map(|flags| flags.to_string()),
                expected,
                "{requested:?}"
            );
        }
    }

    #[test]
    fn selinux_labels_must_match_the_mounted_filesystem() {
        const LABEL: &str = "system_u:object_r:container_file_t:s0:c1,c2";
        let mut mount = mount_of(&disk("vdb", 16, "bp1"), "/staging", "rw");
        mount.super_options = format!("rw,context=\"{LABEL}\",discard");
        let check = |mount: &Mount, requested: &[&str]| {
            check_labels(&flags(requested), mount, &path_state(mount))
                .map_err(|error| error.to_string())
        };
        let same = format!("context=\"{LABEL}\"");
        assert_eq!(check(&mount, &[&same, "noatime"]), Ok(()));
        assert_eq!(check(&mount, &[]), Ok(()));
        let error = check(&mount, &["context=\"a:b:c:s0:c1,c3\""]).unwrap_err();
        assert!(
            error.contains(LABEL) && error.contains("a:b:c:s0:c1,c3"),
            "{error}"
        );
        mount.super_options = "rw,seclabel".to_owned();
        let error = check(&mount, &[&same]).unwrap_err();
        assert!(error.contains("without context"), "{error}");
    }

    /// The kernel prints labels with a comma in quotation marks (`show_sid`).
    #[test]
    fn selinux_labels_match_the_spelling_of_the_kernel() {
        const TYPE: &str = "system_u:object_r:container_file_t";
        let mut mount = mount_of(&disk("vdb", 16, "bp1"), "/staging", "rw");
        for (requested, printed) in [
            ("s0:c26,c5", "\"TYPE:s0:c5,c26\""),
            ("s0:c3,c2,c1", "TYPE:s0:c1.c3"),
            ("s0:c4,c3,c1", "\"TYPE:s0:c1,c3,c4\""),
        ] {
            let printed = printed.replace("TYPE", TYPE);
            mount.super_options = format!("rw,context={printed},discard");
            let check = |level: &str| {
                let option = format!("context=\"{TYPE}:{level}\"");
                check_labels(&flags(&[&option]), &mount, &path_state(&mount))
            };
            assert!(check(requested).is_ok(), "{requested}");
            assert!(check("s0:c5").is_err());
        }
    }
}
