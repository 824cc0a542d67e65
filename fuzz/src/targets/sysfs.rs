//! Attributes of devices in sysfs and procfs.

use diskplugin::linux::{Capabilities, Capability, DeviceNumber, IoStatistics, Partition, fuzzing};
use diskplugin::model::Serial;

use crate::input::Input;

/// Two numbers of sectors, and a text.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (start, size) = (input.u64(), input.u64());
    check_partition(start, size);
    let Ok(text) = std::str::from_utf8(input.0) else {
        return;
    };
    if let Ok(number) = text.parse::<DeviceNumber>() {
        assert_eq!(number.to_string().parse(), Ok(number));
    }
    let selected = fuzzing::selected(text);
    assert!(text.contains(selected));
    assert!(
        selected == text || !selected.contains(char::is_whitespace),
        "{selected:?}"
    );
    if let Some(serial) = Serial::new(text) {
        assert_eq!(serial.as_str(), text.trim());
        assert_eq!(Serial::new(serial.as_str()), Some(serial));
    }
    check_statistics(text);
    if let Some(capabilities) = Capabilities::parse(text) {
        let line = text.lines().find(|line| line.starts_with("CapEff:")).expect("a mask");
        let mask = u128::from_str_radix(line["CapEff:".len()..].trim(), 16).expect("a hexadecimal number");
        assert_eq!(capabilities.has(Capability::SysAdmin), mask >> 21 & 1 == 1);
        assert_eq!(capabilities.has(Capability::SysResource), mask >> 24 & 1 == 1);
    }
}

fn check_partition(start: u64, size: u64) {
    let bytes = u128::from(size) * 512;
    assert_eq!(u128::from(fuzzing::size(size).0), bytes.min(u128::from(u64::MAX)));
    let (start, size) = (fuzzing::size(start), fuzzing::size(size));
    let partition = Partition {
        name: "vdb1".to_owned(),
        index: 1,
        number: DeviceNumber { major: 254, minor: 17 },
        start,
        size,
        holders: Vec::new(),
    };
    let end = u128::from(start.0) + u128::from(size.0);
    let limit = 1_u128 << 41;
    assert_eq!(partition.is_at_dos_limit(), (limit - 1024..=limit).contains(&end));
}

fn check_statistics(text: &str) {
    let Some(read) = IoStatistics::parse(text) else {
        return;
    };
    let fields: Vec<u128> = text
        .split_whitespace()
        .map_while(|field| field.parse::<u64>().ok())
        .map(u128::from)
        .collect();
    let or_zero = |index: usize| fields.get(index).copied().unwrap_or(0);
    assert_eq!(u128::from(read.in_flight), fields[8]);
    let completed = fields[0] + fields[4] + or_zero(11) + or_zero(15);
    assert_eq!(u128::from(read.completed), completed.min(u128::from(u64::MAX)));
    assert_eq!(u128::from(read.read_bytes), (fields[2] * 512).min(u128::from(u64::MAX)));
}
