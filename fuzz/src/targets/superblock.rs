//! Superblocks, against fields that are computed in wider integers.

use diskplugin::linux::fuzzing;
use diskplugin::model::{Bytes, Filesystem};
use jiff::Timestamp;

use crate::input::Input;

/// The superblock area, which the input changes in places.
const AREA: usize = 68 << 10;

/// A head of a device, with the magic numbers that the first byte selects and bytes at offsets.
pub fn head(input: &mut Input<'_>) -> Vec<u8> {
    let mut head = vec![0; AREA];
    let magics: [(usize, &[u8]); 4] = [
        (0, b"XFSB"),
        (1024 + 56, &[0x53, 0xEF]),
        ((64 << 10) + 64, b"_BHRfS_M"),
        ((64 << 10) + 64, b"!BHRfS_M"),
    ];
    let selected = input.byte();
    for (bit, (at, magic)) in magics.iter().enumerate() {
        if selected & 1 << bit != 0 {
            head[*at..*at + magic.len()].copy_from_slice(magic);
        }
    }
    while !input.0.is_empty() {
        let area = [0, 1024, 64 << 10][usize::from(input.byte() % 3)];
        let at = area + usize::from(input.u16()) % 1024;
        let value = input.u64().to_le_bytes();
        head[at..at + 8].copy_from_slice(&value);
    }
    head
}

fn number(bytes: &[u8], is_big: bool) -> u128 {
    let add = |value: u128, byte: &u8| value << 8 | u128::from(*byte);
    if is_big {
        bytes.iter().fold(0, add)
    } else {
        bytes.iter().rev().fold(0, add)
    }
}

/// The size that the superblock of a filesystem states, in bytes.
fn stated(head: &[u8], filesystem: Filesystem) -> Option<u128> {
    let little = |at: usize, length: usize| number(&head[at..at + length], false);
    let big = |at: usize, length: usize| number(&head[at..at + length], true);
    match filesystem {
        Filesystem::Ext4 | Filesystem::Ext3 => {
            let high = if little(1024 + 96, 4) & 0x80 != 0 {
                little(1024 + 0x150, 4)
            } else {
                0
            };
            let shift = u32::try_from(little(1024 + 24, 4)).expect("four bytes");
            // The largest block is 64 KiB.
            let block = 1024_u128.checked_shl(shift).filter(|_| shift <= 6)?;
            (little(1024 + 56, 2) == 0xEF53).then(|| (high << 32 | little(1024 + 4, 4)) * block)
        }
        Filesystem::Xfs => head.starts_with(b"XFSB").then(|| big(8, 8) * big(4, 4)),
        Filesystem::Btrfs => {
            let at = 64 << 10;
            (&head[at + 64..at + 72] == b"_BHRfS_M").then(|| little(at + 112, 8))
        }
    }
}

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let total = Bytes(input.u64());
    let cut = usize::from(input.u16());
    let head = head(&mut input);
    let parsed = fuzzing::superblocks(&head);
    for filesystem in Filesystem::ALL {
        let stated = stated(&head, filesystem).and_then(|size| u64::try_from(size).ok());
        assert_eq!(parsed.size(filesystem), stated.map(Bytes), "{filesystem}");
        let mounted = parsed.mounted_size(filesystem, total);
        assert!(
            filesystem != Filesystem::Xfs || mounted.is_none_or(|size| size >= total.min(Bytes(1))),
            "{mounted:?}"
        );
    }
    if let Some(ext) = parsed.ext {
        assert!(!ext.has_errors() || ext.demands_full_check(Timestamp::UNIX_EPOCH));
    }
    // A device may be shorter than the area.
    fuzzing::superblocks(&head[..cut.min(head.len())]);
}
