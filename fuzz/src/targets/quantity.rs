//! Numbers of requests: quantities of Kubernetes, ranges of sizes, and timeouts.

use std::time::Duration;

use diskplugin::csi::fuzzing::timeout;
use diskplugin::model::{Bytes, Gib, SizeRange, quantity};

use crate::input::Input;

const GIB: u128 = 1 << 30;

/// Four numbers, and a text.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let numbers: [u64; 4] = std::array::from_fn(|_| input.u64());
    check_range(numbers);
    let Ok(text) = std::str::from_utf8(input.0) else {
        return;
    };
    if let Ok(bytes) = quantity::parse(text) {
        assert!(i64::try_from(bytes.0).is_ok(), "{text:?}");
        assert_eq!(quantity::parse(&bytes.0.to_string()), Ok(bytes), "{text:?}");
        if let Some(expected) = value(text.trim()) {
            assert_eq!(u128::from(bytes.0), expected, "{text:?}");
        }
    }
    check_timeout(text);
}

/// The value of a quantity with whole digits and a unit.
fn value(text: &str) -> Option<u128> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u128 = digits.parse().ok()?;
    let unit: u128 = match &text[digits.len()..] {
        "" => 1,
        "k" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "Pi" => 1 << 50,
        "Ei" => 1 << 60,
        _ => return None,
    };
    number.checked_mul(unit)
}

fn check_range([required, limit, least, most]: [u64; 4]) {
    let range = SizeRange {
        required: (required > 0).then_some(Bytes(required)),
        limit: (limit > 0).then_some(Bytes(limit)),
    };
    let gib = |number: u64| u32::try_from(number >> 32).unwrap_or_default();
    let (least, most) = (gib(least), gib(most));
    let resolved = range.resolve(Gib(least)..=Gib(most));
    let smallest = u128::from(required).div_ceil(GIB).max(u128::from(least));
    let fits = smallest <= u128::from(most) && (limit == 0 || smallest * GIB <= u128::from(limit));
    match resolved {
        Ok(size) => assert!(fits && u128::from(size.0) == smallest, "{range} {size}"),
        Err(_) => assert!(!fits, "{range} {least} {most}"),
    }
    if let Some(size) = Bytes(required).gib_ceil() {
        assert!(size.bytes().0 >= required);
    }
}

/// A timeout has digits and a unit (gRPC over HTTP/2).
fn check_timeout(text: &str) {
    let Some(timeout) = timeout(text) else {
        return;
    };
    let (digits, unit) = text.split_at(text.len() - 1);
    assert!(
        (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()),
        "{text:?}"
    );
    let nanoseconds: u128 = match unit {
        "n" => 1,
        "u" => 1_000,
        "m" => 1_000_000,
        "S" => 1_000_000_000,
        "M" => 60_000_000_000,
        "H" => 3_600_000_000_000,
        _ => panic!("{text:?} has no unit"),
    };
    let number: u128 = digits.parse().expect("digits");
    assert_eq!(timeout.as_nanos(), number * nanoseconds);
    let _: Duration = timeout;
}
