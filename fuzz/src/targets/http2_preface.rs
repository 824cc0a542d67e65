//! The client side of an HTTP/2 connection, with the authority replaced for the server.

use diskplugin::csi::fuzzing::rewrite;

use crate::input::Input;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The size of the parts in which the bytes arrive, a flag for the preface, and the bytes.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let part = usize::from(input.byte()) + 1;
    let has_preface = input.byte() & 1 == 0;
    let connection = if has_preface {
        [PREFACE, input.0].concat()
    } else {
        input.0.to_vec()
    };
    let whole = rewrite([connection.as_slice()]);
    // The parts do not matter.
    assert_eq!(rewrite(connection.chunks(part)), whole);
    // Nothing is left to replace.
    assert_eq!(rewrite([whole.as_slice()]), whole);
    if !connection.starts_with(PREFACE) {
        assert_eq!(whole, connection);
    }
    // Without a field block, nothing changes.
    let (before, after) = (frames(&connection), frames(&whole));
    let others = |frames: &[(u8, Vec<u8>)]| -> Vec<(u8, Vec<u8>)> {
        frames
            .iter()
            .filter(|(kind, _)| ![1, 9].contains(kind))
            .cloned()
            .collect()
    };
    if let (Some(before), Some(after)) = (before, after) {
        assert_eq!(others(&before), others(&after));
    }
}

/// The kinds and contents of complete frames; none if the connection is not HTTP/2 or ends within a frame.
fn frames(connection: &[u8]) -> Option<Vec<(u8, Vec<u8>)>> {
    let mut rest = connection.strip_prefix(PREFACE)?;
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let header = rest.get(..9)?;
        let length = usize::from(header[0]) << 16 | usize::from(header[1]) << 8 | usize::from(header[2]);
        let frame = rest.get(..9 + length)?;
        frames.push((header[3], frame.to_vec()));
        rest = &rest[9 + length..];
    }
    Some(frames)
}
