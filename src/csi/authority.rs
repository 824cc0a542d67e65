//! Lets in a client that calls a socket by its path. kubelet's registration client sets no authority, and grpc-go
//! then sends the socket's path as `:authority`, percent-encoded. The HTTP/2 server below tonic takes that for no name
//! of a host and resets the stream (`PROTOCOL_ERROR`) before any service sees the call. So the name is replaced on its
//! way in. Whose name it is matters to nobody here: on a unix socket there is only one.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

/// What the server is shown. One letter: no entry of the server's table of headers is then larger than its writer
/// believes, so that both count its places alike (RFC 7541, 4.1).
const SHOWN: &[u8] = b"k";

/// What a client begins with (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length, type, flags and stream of a frame (RFC 9113, 4.1).
const HEAD: usize = 9;

/// The longest frame that the server takes, as it has not asked for longer ones.
const LONGEST: usize = 1 << 14;

const HEADERS: u8 = 1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// The index of `:authority` in the table that both sides begin with (RFC 7541, appendix A).
const AUTHORITY: usize = 1;

/// A stream from a client, with the authority replaced.
#[derive(Debug)]
pub(super) struct Renamed<S> {
    stream: S,
    filter: Filter,
    /// What has passed the filter, and how much of it has been read.
    passed: Vec<u8>,
    read: usize,
}

impl<S> Renamed<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            filter: Filter::default(),
            passed: Vec::new(),
            read: 0,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Renamed<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.read == this.passed.len() {
            this.passed.clear();
            this.read = 0;
            let mut space = [0; 2048];
            let mut came = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut came))?;
            if came.filled().is_empty() {
                this.filter.end(&mut this.passed);
                if this.passed.is_empty() {
                    return Poll::Ready(Ok(()));
                }
            }
            this.filter.take(came.filled(), &mut this.passed);
        }
        let rest = &this.passed[this.read..];
        let length = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..length]);
        this.read += length;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Renamed<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

impl<S> Connected for Renamed<S> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

/// Reads frames, and hands them on. What it does not understand goes on as it came: the server judges.
#[derive(Debug, Default)]
struct Filter {
    /// What is no whole frame yet.
    held: Vec<u8>,
    /// Whether the preface has come.
    begun: bool,
    /// Whether nothing is looked at any more.
    blind: bool,
}

impl Filter {
    fn take(&mut self, bytes: &[u8], passed: &mut Vec<u8>) {
        self.held.extend_from_slice(bytes);
        let mut at = 0;
        while !self.blind {
            let rest = &self.held[at..];
            let whole = match (self.begun, rest) {
                (false, _) => PREFACE.len(),
                (true, [a, b, c, ..]) => HEAD + length([*a, *b, *c]),
                (true, _) => break,
            };
            self.blind = whole > HEAD + LONGEST;
            let Some(unit) = rest.get(..whole) else {
                break;
            };
            if !self.begun {
                self.blind = unit != PREFACE;
                self.begun = true;
            }
            match renamed(unit) {
                Some(frame) => passed.extend(frame),
                None => passed.extend_from_slice(unit),
            }
            at += whole;
        }
        self.held.drain(..at);
        if self.blind {
            passed.append(&mut self.held);
        }
    }

    /// Lets go of what is held, as nothing more comes.
    fn end(&mut self, passed: &mut Vec<u8>) {
        passed.append(&mut self.held);
    }
}

fn length([a, b, c]: [u8; 3]) -> usize {
    usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c)
}

/// The frame with another authority; none where it has none to replace.
fn renamed(frame: &[u8]) -> Option<Vec<u8>> {
    let (head, payload) = frame.split_at_checked(HEAD)?;
    let (kind, flags) = (head[3], head[4]);
    // A block of headers that goes on in a second frame is longer than any of kubelet's.
    if kind != HEADERS || flags & END_HEADERS == 0 {
        return None;
    }
    let (mut begin, mut end) = (0, payload.len());
    if flags & PADDED != 0 {
        end = end.checked_sub(usize::from(*payload.first()?))?;
        begin += 1;
    }
    if flags & PRIORITY != 0 {
        begin += 5;
    }
    let value = authority(payload.get(begin..end)?)?;
    let (before, after) = (
        &payload[..begin + value.start],
        &payload[begin + value.end..],
    );
    let size = u8::try_from(SHOWN.len()).ok()?;
    let payload = [before, &[size], SHOWN, after].concat();
    let length = u32::try_from(payload.len()).ok()?.to_be_bytes();
    Some([&length[1..], &head[3..], &payload].concat())
}

/// Where in a block of headers the authority's value stands, its length included; none where it is not spelt out.
/// Texts are stepped over by their lengths, so that none has to be decoded (RFC 7541, 6).
fn authority(block: &[u8]) -> Option<Range<usize>> {
    let mut at = 0;
    while at < block.len() {
        let (bits, is_literal) = match block[at] {
            0x80.. => (7, false),
            0x40..=0x7f => (6, true),
            0x20..=0x3f => (5, false),
            0x00..=0x1f => (4, true),
        };
        let (index, next) = integer(block, at, bits)?;
        at = next;
        if !is_literal {
            continue;
        }
        if index == 0 {
            at = text_end(block, at)?;
        }
        let end = text_end(block, at)?;
        if index == AUTHORITY {
            return (end > at + 1).then_some(at..end);
        }
        at = end;
    }
    None
}

/// The number in the last bits of this byte and those that follow, and where it ends (RFC 7541, 5.1).
fn integer(block: &[u8], at: usize, bits: u32) -> Option<(usize, usize)> {
    let most = (1_usize << bits) - 1;
    let first = usize::from(*block.get(at)?) & most;
    if first < most {
        return Some((first, at + 1));
    }
    let mut value = most;
    // No number here is larger than a frame is long.
    for (place, byte) in block[at + 1..].iter().take(3).enumerate() {
        value += usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((value, at + 2 + place));
        }
    }
    None
}

/// Where the text that begins here ends (RFC 7541, 5.2).
fn text_end(block: &[u8], at: usize) -> Option<usize> {
    let (length, begin) = integer(block, at, 7)?;
    let end = begin + length;
    (end <= block.len()).then_some(end)
}

#[cfg(test)]
pub(super) mod tests;
