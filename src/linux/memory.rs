//! The memory limit of this process and its children, from its control group.

use std::fs;
use std::path::Path;

use crate::model::Bytes;

/// The limit of the process's control group, of version 2 or 1; `None` if there is none or it cannot be read. The
/// limits of parent groups are not visible in a container.
pub fn limit(proc: &Path, sys: &Path) -> Option<Bytes> {
    let groups = fs::read_to_string(proc.join("self/cgroup")).ok()?;
    let root = sys.join("fs/cgroup");
    groups.lines().find_map(|line| {
        // ID:CONTROLLERS:PATH; version 2 is "0::PATH".
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let (root, file) = if controllers.is_empty() {
            (root.clone(), "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            (root.join("memory"), "memory.limit_in_bytes")
        } else {
            return None;
        };
        read(&root.join(path).join(file)).or_else(|| read(&root.join(file)))
    })
}

/// Parses a limit. Without a limit, the file contains "max" in version 2, and a number close to 2^63 in version 1.
fn read(file: &Path) -> Option<Bytes> {
    let bytes: u64 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    (bytes < 1 << 62).then_some(Bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::fake::write_file;

    fn limit_with(groups: &str, files: &[(&str, &str)]) -> Option<Bytes> {
        let dir = tempfile::tempdir().unwrap();
        write_file(dir.path(), "proc/self/cgroup", groups);
        for (path, text) in files {
            write_file(dir.path(), path, text);
        }
        limit(&dir.path().join("proc"), &dir.path().join("sys"))
    }

    #[test]
    fn both_versions_are_read_from_within_a_container_and_without() {
        let max = Some(Bytes(1 << 28));
        let text = (1 << 28).to_string();
        for (groups, file) in [
            ("0::/pod/x\n", "sys/fs/cgroup/pod/x/memory.max"),
            ("0::/\n", "sys/fs/cgroup/memory.max"),
            ("0::/pod/x\n", "sys/fs/cgroup/memory.max"),
            (
                "3:cpu:/\n2:memory:/pod\n0::/\n",
                "sys/fs/cgroup/memory/pod/memory.limit_in_bytes",
            ),
            ("2:memory:/pod\n", "sys/fs/cgroup/memory/memory.limit_in_bytes"),
        ] {
            assert_eq!(limit_with(groups, &[(file, &text)]), max, "{groups:?}");
        }
    }

    #[test]
    fn no_limit_is_none() {
        assert_eq!(limit_with("0::/\n", &[("sys/fs/cgroup/memory.max", "max\n")]), None);
        let file = "sys/fs/cgroup/memory/memory.limit_in_bytes";
        assert_eq!(limit_with("2:memory:/\n", &[(file, "9223372036854771712\n")]), None);
        assert_eq!(limit_with("", &[]), None);
    }
}
