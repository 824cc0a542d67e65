//! The mount table. What is parsed is printed as the kernel does, and parsed again.

use std::os::unix::ffi::OsStrExt;

use diskplugin::linux::{Mount, fuzzing};

pub fn run(data: &[u8]) {
    let Ok(mounts) = fuzzing::mounts(data) else {
        return;
    };
    let lines = data.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    assert_eq!(mounts.len(), lines.clone().count());
    for (mount, line) in mounts.iter().zip(lines) {
        assert_eq!(mount.point.as_os_str().as_bytes(), decode(field(line, 4)));
        assert_eq!(mount.root.as_os_str().as_bytes(), decode(field(line, 3)));
        assert!(!mount.was_remounted_read_only() || !mount.has_option("ro") || mount.has_super_option("emergency_ro"));
        assert!(mount.node_name().is_none_or(|name| !name.contains('/')));
    }
    let table: Vec<u8> = mounts.iter().flat_map(print).collect();
    assert_eq!(fuzzing::mounts(&table).as_ref(), Ok(&mounts));
}

fn field(line: &[u8], index: usize) -> &[u8] {
    line.split(|byte| *byte == b' ').nth(index).unwrap_or_default()
}

/// Decodes `\ooo`; the kernel writes no other backslash (`mangle` in fs/seq_file.c).
fn decode(text: &[u8]) -> Vec<u8> {
    let is_octal = |digits: &[u8]| digits[0] <= b'3' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
    let (mut decoded, mut at) = (Vec::new(), 0);
    while at < text.len() {
        match text.get(at + 1..at + 4) {
            Some(digits) if text[at] == b'\\' && is_octal(digits) => {
                decoded.push(digits.iter().fold(0, |value: u8, digit| value << 3 | (digit - b'0')));
                at += 4;
            }
            _ => {
                decoded.push(text[at]);
                at += 1;
            }
        }
    }
    decoded
}

fn print(mount: &Mount) -> Vec<u8> {
    let mut line = format!("1 2 {}", mount.number).into_bytes();
    let shared = if mount.is_shared { "shared:1" } else { "" };
    for field in [
        mount.root.as_os_str().as_bytes(),
        mount.point.as_os_str().as_bytes(),
        mount.options.as_bytes(),
        shared.as_bytes(),
        b"-",
        mount.kind.as_bytes(),
        mount.source.as_os_str().as_bytes(),
        mount.super_options.as_bytes(),
    ] {
        line.push(b' ');
        for byte in field {
            match byte {
                b' ' | b'\t' | b'\n' | b'\\' => line.extend(format!("\\{byte:03o}").bytes()),
                _ => line.push(*byte),
            }
        }
    }
    line.push(b'\n');
    line
}
