//! Options of mounts, compared: what a mount has, and what a call asks for. Options of one mount
//! (`noexec` and the like) may be stricter at a target than where the volume is staged; those of the
//! filesystem are the same wherever it is mounted, and kubelet passes all of them to both calls.

use super::common::incompatible;
use super::{PathState, Refusal};
use crate::host::Mount;
use crate::model::MountFlags;

/// Options of one mount that take something away, and what takes them back.
const STRICT: [(&str, &str); 5] = [
    ("nosuid", "suid"),
    ("nodev", "dev"),
    ("noexec", "exec"),
    ("noatime", "atime"),
    ("nodiratime", "diratime"),
];

/// Options that label all files of a filesystem for SELinux (mount(8)).
const CONTEXTS: [&str; 4] = ["context", "fscontext", "defcontext", "rootcontext"];

/// The strict options that are asked for and that the mount does not have.
///
/// # Errors
/// When an option is asked for that the mount rules out: a target is never less strict than what is
/// staged.
pub(super) fn missing(
    flags: &MountFlags,
    mount: &Mount,
    path_state: &PathState,
) -> Result<MountFlags, Refusal> {
    let mut missing = Vec::new();
    for (strict, lax) in STRICT {
        let last = flags.iter().rfind(|flag| [strict, lax].contains(flag));
        let has = mount.has_option(strict);
        match last {
            Some(flag) if flag == strict && !has => missing.push(strict.to_owned()),
            Some(flag) if flag == lax && has => {
                return Err(incompatible(path_state, strict.to_owned(), lax));
            }
            Some(_) | None => {}
        }
    }
    Ok(MountFlags::new(missing).expect("these options are options"))
}

/// That the filesystem has the SELinux labels that are asked for; no label asks for nothing.
pub(super) fn same_labels(
    flags: &MountFlags,
    mount: &Mount,
    path_state: &PathState,
) -> Result<(), Refusal> {
    for option in CONTEXTS {
        let value = |text: &str| {
            let value = text.strip_prefix(option)?.strip_prefix('=')?;
            Some(value.replace('"', ""))
        };
        let Some(wanted) = flags.iter().filter_map(value).next_back() else {
            continue;
        };
        let found = split(&mount.super_options).into_iter().find_map(value);
        if found.as_deref() != Some(&wanted) {
            let found = found.map_or_else(
                || format!("without {option}"),
                |found| format!("with {option}=\"{found}\""),
            );
            return Err(incompatible(
                path_state,
                found,
                &format!("{option}=\"{wanted}\""),
            ));
        }
    }
    Ok(())
}

/// Splits at commas that are not in quotation marks.
fn split(options: &str) -> Vec<&str> {
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

    fn at(mount: &Mount) -> PathState {
        PathState {
            path: "/staging".into(),
            entry: Entry::Directory,
            mount: Some(mount.clone()),
            dead: false,
        }
    }

    #[test]
    fn a_target_may_be_stricter_than_what_is_staged_and_never_laxer() {
        let mount = mount_of(&disk("vdb", 16, "bp1"), "/staging", "rw,noexec,relatime");
        for (wanted, found) in [
            (&[][..], Some("")),
            (&["noexec", "discard"], Some("")),
            (&["nodev", "noexec", "nosuid"], Some("nosuid,nodev")),
            (&["exec", "noexec"], Some("")),
            (&["noatime", "atime"], Some("")),
            (&["noexec", "exec"], None),
        ] {
            let missing = missing(&flags(wanted), &mount, &at(&mount)).ok();
            let found = found.map(str::to_owned);
            assert_eq!(missing.map(|flags| flags.to_string()), found, "{wanted:?}");
        }
    }

    #[test]
    fn a_filesystem_has_one_label_for_all() {
        const LABEL: &str = "system_u:object_r:container_file_t:s0:c1,c2";
        let mut mount = mount_of(&disk("vdb", 16, "bp1"), "/staging", "rw");
        mount.super_options = format!("rw,context=\"{LABEL}\",discard");
        let check = |mount: &Mount, wanted: &[&str]| {
            same_labels(&flags(wanted), mount, &at(mount)).map_err(|refusal| refusal.to_string())
        };
        let same = format!("context=\"{LABEL}\"");
        assert_eq!(check(&mount, &[&same, "noatime"]), Ok(()));
        assert_eq!(check(&mount, &[]), Ok(()));
        let refused = check(&mount, &["context=\"a:b:c:s0:c1,c3\""]).unwrap_err();
        assert!(
            refused.contains(LABEL) && refused.contains("a:b:c:s0:c1,c3"),
            "{refused}"
        );
        mount.super_options = "rw,seclabel".to_owned();
        let refused = check(&mount, &[&same]).unwrap_err();
        assert!(refused.contains("without context"), "{refused}");
    }
}
