//! A page token that is accepted is one that the driver issues: it prints as it was read.

use diskplugin::csi::fuzzing;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(printed) = fuzzing::token(text) {
        assert_eq!(printed, text);
    }
}
