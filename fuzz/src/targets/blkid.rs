//! The output of blkid with the first bytes of a device: only a successful probe without output, of a device that reads
//! as zero, is blank.

use diskplugin::linux::{Content, Output, fuzzing};

use super::superblock::head;
use crate::input::Input;

const ZEROS: [u8; 4096] = [0; 4096];

/// The exit code and flags, the errors in a line, the output up to an empty line, and the head.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let code = match input.byte() % 8 {
        0 => None,
        1 => Some(0),
        2 => Some(2),
        3 => Some(8),
        _ => Some(i32::from(input.byte())),
    };
    let flags = input.byte();
    let stderr = String::from_utf8_lossy(input.line()).into_owned();
    let mut stdout = String::new();
    loop {
        let line = input.line();
        if line.is_empty() {
            break;
        }
        stdout.push_str(&String::from_utf8_lossy(line));
        stdout.push('\n');
    }
    let head = head(&mut input);
    // Compared in blocks, because this scan would take most of the time.
    let block = head
        .chunks(ZEROS.len())
        .position(|block| block != &ZEROS[..block.len()]);
    let first_data = block.and_then(|block| {
        let begin = block * ZEROS.len();
        Some(begin + head[begin..].iter().position(|byte| *byte != 0)?)
    });
    let first_data = first_data.map(|at| u64::try_from(at).expect("an offset"));
    // Behind the head.
    let first_data = first_data.or((flags & 1 != 0).then_some(1 << 30));
    let probe = Output { code, stdout, stderr };
    check(&probe, first_data, fuzzing::content(&probe, &head, first_data));
}

fn check(probe: &Output, first_data: Option<u64>, content: Result<Content, String>) {
    let has_key = |key: &str| probe.stdout.lines().any(|line| line.starts_with(key));
    match content {
        Ok(Content::Blank) => {
            assert_eq!((probe.code, first_data), (Some(2), None));
            assert!(probe.stderr.trim().is_empty(), "{probe:?}");
        }
        Ok(Content::Unknown { offset }) => {
            assert_eq!((probe.code, first_data), (Some(2), Some(offset)));
        }
        Ok(Content::IncompleteFormat { .. }) => {
            assert!(first_data.is_some() && matches!(probe.code, Some(0 | 2)), "{probe:?}");
        }
        Ok(Content::Filesystem { filesystem, .. }) => {
            assert!(probe.code == Some(0) && first_data.is_some(), "{probe:?}");
            assert!(!has_key("PTTYPE="), "{probe:?}");
            let given = probe.stdout.lines().find_map(|line| line.strip_prefix("TYPE="));
            let kind = filesystem.as_str();
            assert!(
                given == Some(kind) || (given, kind) == (Some("ext2"), "ext4"),
                "{probe:?}"
            );
        }
        Ok(Content::Unsupported { description }) => {
            assert!(
                !description.is_empty() && matches!(probe.code, Some(0 | 8)),
                "{probe:?}"
            );
        }
        Err(reason) => assert!(!reason.is_empty()),
    }
}
