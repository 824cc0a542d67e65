//! The versions of the filesystem tools on this machine.

use std::time::Duration;

use crate::base::Deadline;
use crate::linux::{Command, Exec, Output};

/// A program that prints its version does not read a device.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Each package of the tools, and a command that prints its version.
const TOOLS: [(&str, &str, &str); 4] = [
    ("util-linux", "blkid", "--version"),
    ("e2fsprogs", "mkfs.ext4", "-V"),
    ("xfsprogs", "mkfs.xfs", "-V"),
    ("btrfs-progs", "mkfs.btrfs", "--version"),
];

/// Each package with its version, or `unknown`.
pub async fn tool_versions(exec: &dyn Exec) -> String {
    let mut found = Vec::new();
    for (package, program, flag) in TOOLS {
        let command = Command::new(program).arg(flag);
        let output = exec.run(&command, Deadline::after(TIMEOUT)).await;
        let version = output.ok().and_then(|output| version(&output));
        let version = version.unwrap_or_else(|| "unknown".to_owned());
        found.push(format!("{package} {version}"));
    }
    found.join(", ")
}

/// The first number with a dot in the output. e2fsprogs prints it to standard error.
fn version(output: &Output) -> Option<String> {
    let texts = [&output.stdout, &output.stderr].into_iter();
    let mut words = texts.flat_map(|text| text.split_whitespace());
    words.find_map(|word| {
        let word = word.trim_start_matches('v').trim_matches([',', '(', ')']);
        let is_version = word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
        is_version.then(|| word.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_the_output_of_each_tool() {
        for (stdout, stderr, expected) in [
            (
                "",
                "mke2fs 1.47.0 (5-Feb-2023)\n\tUsing EXT2FS Library version 1.47.0\n",
                "1.47.0",
            ),
            ("mkfs.xfs version 6.1.0\n", "", "6.1.0"),
            ("mkfs.btrfs, part of btrfs-progs v6.2\n", "", "6.2"),
            (
                "blkid from util-linux 2.38.1  (libblkid 2.38.1, 25-Jun-2023)\n",
                "",
                "2.38.1",
            ),
        ] {
            let output = Output {
                code: Some(0),
                stdout: stdout.to_owned(),
                stderr: stderr.to_owned(),
            };
            assert_eq!(version(&output).as_deref(), Some(expected));
        }
    }
}
