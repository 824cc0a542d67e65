use proptest::prelude::*;

use super::*;

/// The first bytes that grpc-go 1.83 sends to a socket at `/tmp/diskplugin.csi.example-reg.sock`: preface, settings,
/// their acknowledgement, and the headers and body of `GetInfo`.
pub(in crate::csi) const FROM_KUBELET: &str = "505249202a20485454502f322e300d0a0d0a534d0d0a0d0a\
     0000000400000000000000000401000000000000750104000000018386459c62ba2d98d558598c84d83498f52fb4b3\
     1909b06931ea63115392a94f419d5458534d6a8b0c86475ae8b66354b91065cbe474d74156b0b32e8393af5f8b1d75\
     d0620d263d4c4d65647a8a9acac8b4c7602bbccae140027465864d833505b11f40899acac8b24d494f6a7f8669f79f\
     0b6ddb0000050001000000010000000000";

/// The same with the replaced authority, 28 bytes shorter.
fn replaced() -> Vec<u8> {
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

/// The first bytes that gRPC C core 58 (Python 1.85) sends to a socket at `/run/csi.sock`, with a literal name.
fn from_c_core(authority: &[u8]) -> Vec<u8> {
    let length = u8::try_from(authority.len()).unwrap();
    let fields = [
        b"\x40\x05:path\x16/csi.v1.Identity/Probe\x40\x0a:authority",
        &[length][..],
        authority,
        b"\x83\x86\x40\x0ccontent-type\x10application/grpc\x40\x02te\x08trailers",
    ];
    headers(END_HEADERS, &fields.concat())
}

fn rewritten(chunks: &[&[u8]]) -> Vec<u8> {
    let (mut rewriter, mut ready) = (Rewriter::default(), Vec::new());
    for chunk in chunks {
        rewriter.write(chunk, &mut ready);
    }
    rewriter.finish(&mut ready);
    ready
}

/// A preface and a HEADERS frame.
fn headers(flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [PREFACE, &[0, 0, length, HEADERS, flags, 0, 0, 0, 1], payload].concat()
}

#[test]
fn only_the_authority_of_kubelets_call_changes() {
    assert_eq!(rewritten(&[&bytes(FROM_KUBELET)]), replaced());
}

#[test]
fn the_authority_is_replaced_however_the_bytes_are_split() {
    let sent = bytes(FROM_KUBELET);
    let single: Vec<&[u8]> = sent.chunks(1).collect();
    assert_eq!(rewritten(&single), replaced());
    for at in 0..sent.len() {
        let (first, second) = sent.split_at(at);
        assert_eq!(rewritten(&[first, second]), replaced(), "cut at {at}");
    }
}

fn continuation(flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let header = [length[1], length[2], length[3], CONTINUATION, flags, 0, 0, 0, 1];
    [&header, payload].concat()
}

#[test]
fn an_authority_of_any_form_is_replaced() {
    for sent in [
        &b"run%2Fcsi.sock"[..],
        b"/run/csi.sock",
        b"unix:///run/csi.sock",
        b"\xff\xfe",
        b"",
        b"localhost",
    ] {
        assert_eq!(rewritten(&[&from_c_core(sent)]), from_c_core(b"k"));
    }
    // The name in Huffman code, never indexed.
    let name = b"\x10\x88\xb8\x3b\x53\x39\xec\x32\x7d\x7f";
    let sent = headers(END_HEADERS, &[&name[..], b"\x05/path"].concat());
    let wanted = headers(END_HEADERS, &[&name[..], b"\x01k"].concat());
    assert_eq!(rewritten(&[&sent]), wanted);
}

#[test]
fn a_field_block_of_several_frames_is_rewritten_as_a_whole() {
    let large = [b"\x40\x01x\x7f\x81\x7f", &[b'v'; 16_384][..]].concat();
    let sent = [
        headers(0, b"\x01"),
        continuation(0, b"\x05/pa"),
        continuation(END_HEADERS, &[&b"th"[..], &large[..MAX_PAYLOAD - 2]].concat()),
    ];
    let block = [&b"\x01\x01k"[..], &large[..MAX_PAYLOAD - 2]].concat();
    let mut wanted = [PREFACE, b"\0\x40\0\x01\0\0\0\0\x01", &block[..MAX_PAYLOAD]].concat();
    wanted.extend(continuation(END_HEADERS, &block[MAX_PAYLOAD..]));
    assert_eq!(rewritten(&[&sent.concat()]), wanted);
}

#[test]
fn padding_is_dropped_and_priority_kept() {
    let path = b"\x01\x05/path";
    let padded = headers(END_HEADERS | PADDED, &[b"\x02", &path[..], b"\0\0"].concat());
    let wanted = headers(END_HEADERS, b"\x01\x01k");
    assert_eq!(rewritten(&[&padded]), wanted);
    let ranked = headers(END_HEADERS | PRIORITY, &[b"\0\0\0\0\x10", &path[..]].concat());
    let wanted = headers(END_HEADERS | PRIORITY, b"\0\0\0\0\x10\x01\x01k");
    assert_eq!(rewritten(&[&ranked]), wanted);
}

#[test]
fn unparsable_data_passes_unchanged() {
    let whole = bytes(FROM_KUBELET);
    for sent in [
        b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
        // Truncated in the preface, and in a frame.
        whole[..10].to_vec(),
        whole[..60].to_vec(),
        // Longer than the maximum frame.
        [PREFACE, b"\xff\xff\xff\x01\x04\0\0\0\x01rest"].concat(),
        // Headers without end, without fields, with a string and an integer beyond the end.
        headers(0, b"\x01\x05/path"),
        headers(END_HEADERS, b""),
        headers(END_HEADERS, b"\x41\x7f\xff\xff\xff\xff"),
        headers(END_HEADERS, b"\x01\x09/path"),
        headers(END_HEADERS | PADDED, b"\x09\x01\x01k"),
        // A reference to the table, and another field whose value is a path.
        headers(END_HEADERS, b"\x83\xbe"),
        headers(END_HEADERS, b"\x40\x02te\x05/path"),
        // A frame of another type within a field block, and an endless block.
        [&headers(0, b"\x01\x05/path")[..], b"\0\0\x01\0\0\0\0\0\x01x"].concat(),
        [
            headers(0, b"\x01\x05/path"),
            continuation(0, &[0; MAX_PAYLOAD]).repeat(8),
        ]
        .concat(),
    ] {
        assert_eq!(rewritten(&[&sent]), sent);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_handled_the_same_however_they_are_split(sent: Vec<u8>, cut: prop::sample::Index) {
        for sent in [sent.clone(), [PREFACE, &sent].concat(), headers(END_HEADERS, &sent[..sent.len().min(255)])] {
            let (first, second) = sent.split_at(cut.index(sent.len() + 1));
            prop_assert_eq!(rewritten(&[first, second]), rewritten(&[&sent]));
        }
    }
}
