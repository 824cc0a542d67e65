use proptest::prelude::*;

use super::*;

/// What grpc-go 1.83 sends to begin with, for a socket at `/tmp/diskplugin.csi.example-reg.sock`: preface, settings,
/// their acknowledgement, and the headers and body of `GetInfo`.
pub(in crate::csi) const FROM_KUBELET: &str = "505249202a20485454502f322e300d0a0d0a534d0d0a0d0a\
     0000000400000000000000000401000000000000750104000000018386459c62ba2d98d558598c84d83498f52fb4b3\
     1909b06931ea63115392a94f419d5458534d6a8b0c86475ae8b66354b91065cbe474d74156b0b32e8393af5f8b1d75\
     d0620d263d4c4d65647a8a9acac8b4c7602bbccae140027465864d833505b11f40899acac8b24d494f6a7f8669f79f\
     0b6ddb0000050001000000010000000000";

/// The same with another authority: 28 bytes fewer.
fn shown() -> Vec<u8> {
    let path = "419d5458534d6a8b0c86475ae8b66354b91065cbe474d74156b0b32e8393af";
    let hex = FROM_KUBELET.replace("0000750104", "0000590104");
    bytes(&hex.replace(path, "41016b"))
}

pub(in crate::csi) fn bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2);
    digits
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn filtered(chunks: &[&[u8]]) -> Vec<u8> {
    let (mut filter, mut passed) = (Filter::default(), Vec::new());
    for chunk in chunks {
        filter.take(chunk, &mut passed);
    }
    filter.end(&mut passed);
    passed
}

/// A frame of headers.
fn headers(flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [
        PREFACE,
        &[0, 0, length, HEADERS, flags, 0, 0, 0, 1],
        payload,
    ]
    .concat()
}

#[test]
fn of_kubelets_call_only_the_authority_changes() {
    assert_eq!(filtered(&[&bytes(FROM_KUBELET)]), shown());
}

#[test]
fn it_changes_however_the_bytes_come() {
    let sent = bytes(FROM_KUBELET);
    let single: Vec<&[u8]> = sent.chunks(1).collect();
    assert_eq!(filtered(&single), shown());
    for at in 0..sent.len() {
        let (first, second) = sent.split_at(at);
        assert_eq!(filtered(&[first, second]), shown(), "cut at {at}");
    }
}

#[test]
fn padding_and_priority_are_stepped_over_and_kept() {
    let path = b"\x01\x05/path";
    let padded = headers(
        END_HEADERS | PADDED,
        &[b"\x02", &path[..], b"\0\0"].concat(),
    );
    let wanted = headers(END_HEADERS | PADDED, b"\x02\x01\x01k\0\0");
    assert_eq!(filtered(&[&padded]), wanted);
    let ranked = headers(
        END_HEADERS | PRIORITY,
        &[b"\0\0\0\0\x10", &path[..]].concat(),
    );
    let wanted = headers(END_HEADERS | PRIORITY, b"\0\0\0\0\x10\x01\x01k");
    assert_eq!(filtered(&[&ranked]), wanted);
}

#[test]
fn what_is_not_understood_goes_on_as_it_came() {
    let whole = bytes(FROM_KUBELET);
    for sent in [
        b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
        // Cut off in the preface, and in a frame.
        whole[..10].to_vec(),
        whole[..60].to_vec(),
        // Longer than a frame may be.
        [PREFACE, b"\xff\xff\xff\x01\x04\0\0\0\x01rest"].concat(),
        // Without the end of the headers, with none, with a text and a number that end too late.
        headers(0, b"\x01\x05/path"),
        headers(END_HEADERS, b""),
        headers(END_HEADERS, b"\x41\x7f\xff\xff\xff\xff"),
        headers(END_HEADERS, b"\x01\x09/path"),
        headers(END_HEADERS | PADDED, b"\x09\x01\x01k"),
        // Where it is spoken of by its place in the table, and where it is empty.
        headers(END_HEADERS, b"\x83\xbe"),
        headers(END_HEADERS, b"\x01\x00"),
    ] {
        assert_eq!(filtered(&[&sent]), sent);
    }
}

proptest! {
    #[test]
    fn no_bytes_break_it_and_their_cuts_change_nothing(sent: Vec<u8>, cut: prop::sample::Index) {
        for sent in [sent.clone(), [PREFACE, &sent].concat(), headers(END_HEADERS, &sent[..sent.len().min(255)])] {
            let (first, second) = sent.split_at(cut.index(sent.len() + 1));
            prop_assert_eq!(filtered(&[first, second]), filtered(&[&sent]));
        }
    }
}
