//! Requests of all RPCs: the result depends only on the message, and accepted sizes are possible.

use diskplugin::csi::fuzzing::{Decoded, REQUESTS};
use diskplugin::csi::request::DriverLocation;

use crate::input::Input;

/// The RPC, and the encoded message.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (name, parse) = REQUESTS[usize::from(input.byte()) % REQUESTS.len()];
    let location = DriverLocation {
        region: "cn-beijing".parse().expect("a region"),
        zone: "cn-beijing-a".parse().ok(),
    };
    let Some(first) = parse(input.0, &location) else {
        return;
    };
    check(&first);
    // The maps of a message have another order each time.
    for _ in 0..2 {
        let again = parse(&first.encoded, &location).expect("an encoded message");
        let error = |decoded: &Decoded| decoded.parsed.as_ref().err().map(ToString::to_string);
        assert_eq!(error(&again), error(&first), "{name}");
        assert_eq!(again.parsed.ok().as_ref(), first.parsed.as_ref().ok(), "{name}");
    }
}

fn check(decoded: &Decoded) {
    match &decoded.parsed {
        Ok(accepted) => {
            let (required, limit) = (accepted.size.required, accepted.size.limit);
            for bytes in [required, limit].into_iter().flatten() {
                assert!(i64::try_from(bytes.0).is_ok_and(|bytes| bytes > 0), "{bytes}");
            }
            if let (Some(required), Some(limit)) = (required, limit) {
                assert!(required <= limit, "{required} {limit}");
            }
        }
        Err(error) => {
            let text = error.to_string();
            assert!(!text.is_empty() && !text.contains('\n'), "{text:?}");
        }
    }
}
