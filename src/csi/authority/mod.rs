//! Accepts clients whose `:authority` is not a host name. By default, gRPC C core (Python, C++, Ruby) and grpc-go send
//! the percent-encoded path of the socket. The HTTP/2 server of tonic rejects it as a malformed URI and resets the
//! stream (`PROTOCOL_ERROR`) before any service receives the call. A unix socket has only one host, so this filter
//! replaces the value with a valid one.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_stream::wrappers::UnixListenerStream;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::server::Connected;

/// The replacement, with its length. With one letter, no entry of the server's dynamic table is larger than in the
/// client's table, so the server does not evict entries that the client still references (RFC 7541, 4.1).
const AUTHORITY: &[u8] = b"\x01k";

/// The index of `:authority` in the static table (RFC 7541, appendix A).
const AUTHORITY_INDEX: usize = 1;

/// The name `:authority`, spelled out and in Huffman code (RFC 7541, 5.2 and appendix B).
const AUTHORITY_NAMES: [&[u8]; 2] = [b"\x0a:authority", b"\x88\xb8\x3b\x53\x39\xec\x32\x7d\x7f"];

/// The client connection preface (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length, type, flags and stream of a frame (RFC 9113, 4.1).
const FRAME_HEADER: usize = 9;

/// Maximum payload of a frame: the default, as the server announces no other (RFC 9113, 4.2).
const MAX_PAYLOAD: usize = 1 << 14;

/// Maximum size of a buffered field block. The limit of the server is lower.
const MAX_BLOCK: usize = 1 << 17;

const HEADERS: u8 = 0x1;
const CONTINUATION: u8 = 0x9;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

pub(super) fn accept(
    listener: tokio::net::UnixListener,
) -> impl Stream<Item = io::Result<AuthorityFilter<tokio::net::UnixStream>>> {
    UnixListenerStream::new(listener).map(|stream| stream.map(AuthorityFilter::new))
}

#[derive(Debug)]
pub(super) struct AuthorityFilter<S> {
    stream: S,
    rewriter: Rewriter,
    /// Rewritten bytes, of which the first `read` have been read.
    ready: Vec<u8>,
    read: usize,
}

impl<S> AuthorityFilter<S> {
    fn new(stream: S) -> Self {
        Self {
            stream,
            rewriter: Rewriter::default(),
            ready: Vec::new(),
            read: 0,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for AuthorityFilter<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.read == this.ready.len() {
            this.ready.clear();
            this.read = 0;
            let mut space = [0; 2048];
            let mut received = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut received))?;
            if received.filled().is_empty() {
                this.rewriter.finish(&mut this.ready);
                if this.ready.is_empty() {
                    return Poll::Ready(Ok(()));
                }
            }
            this.rewriter.write(received.filled(), &mut this.ready);
        }
        let rest = &this.ready[this.read..];
        let length = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..length]);
        this.read += length;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for AuthorityFilter<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

impl<S> Connected for AuthorityFilter<S> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

/// Rewrites the client side of an HTTP/2 connection. Data that it cannot parse passes unchanged to the server.
#[derive(Debug, Default)]
pub(super) struct Rewriter {
    partial: Vec<u8>,
    block: Option<Block>,
    state: State,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Preface,
    Frames,
    /// Not HTTP/2, or beyond the limits: everything passes.
    PassThrough,
}

impl Rewriter {
    pub(super) fn write(&mut self, bytes: &[u8], ready: &mut Vec<u8>) {
        self.partial.extend_from_slice(bytes);
        let mut at = 0;
        while self.state != State::PassThrough {
            let rest = &self.partial[at..];
            let length = match (&self.state, rest) {
                (State::Preface, _) => PREFACE.len(),
                (_, [a, b, c, ..]) => FRAME_HEADER + (usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c)),
                _ => break,
            };
            if length > FRAME_HEADER + MAX_PAYLOAD {
                self.state = State::PassThrough;
                break;
            }
            let Some(unit) = rest.get(..length) else {
                break;
            };
            at += length;
            if self.state == State::Preface {
                ready.extend_from_slice(unit);
                self.state = if unit == PREFACE {
                    State::Frames
                } else {
                    State::PassThrough
                };
            } else if !frame(unit, &mut self.block, ready) {
                self.state = State::PassThrough;
            }
        }
        self.partial.drain(..at);
        if self.state == State::PassThrough {
            self.finish(ready);
        }
    }

    /// Passes on buffered data at the end of the stream.
    pub(super) fn finish(&mut self, ready: &mut Vec<u8>) {
        if let Some(block) = self.block.take() {
            ready.extend(block.frames);
        }
        ready.append(&mut self.partial);
    }
}

/// Passes a frame on, or buffers it until its field block is complete. False if the order of frames is invalid.
fn frame(frame: &[u8], block: &mut Option<Block>, ready: &mut Vec<u8>) -> bool {
    let (header, payload) = frame.split_at(FRAME_HEADER);
    let (kind, flags) = (header[3], header[4]);
    let begun = match block.take() {
        None if kind == HEADERS => Block::begin(flags, payload),
        Some(mut begun) if kind == CONTINUATION => {
            begun.fragment.extend_from_slice(payload);
            Some(begun)
        }
        None => {
            ready.extend_from_slice(frame);
            return true;
        }
        Some(begun) => {
            ready.extend(begun.frames);
            None
        }
    };
    let Some(mut begun) = begun else {
        ready.extend_from_slice(frame);
        return false;
    };
    begun.frames.extend_from_slice(frame);
    if flags & END_HEADERS != 0 {
        begun.finish(ready);
        return true;
    }
    let fits = begun.frames.len() <= MAX_BLOCK;
    *block = Some(begun);
    fits
}

/// A field block: HEADERS and the CONTINUATION frames after it (RFC 9113, 4.3).
#[derive(Debug)]
struct Block {
    frames: Vec<u8>,
    /// Without padding. The first `priority` bytes are not part of the field block.
    fragment: Vec<u8>,
    priority: usize,
}

impl Block {
    fn begin(flags: u8, payload: &[u8]) -> Option<Self> {
        let (mut begin, mut end) = (0, payload.len());
        if flags & PADDED != 0 {
            end = end.checked_sub(usize::from(*payload.first()?))?;
            begin = 1;
        }
        let priority = if flags & PRIORITY != 0 { 5 } else { 0 };
        let fragment = payload.get(begin..end)?.to_vec();
        (fragment.len() >= priority).then_some(Self {
            frames: Vec::new(),
            fragment,
            priority,
        })
    }

    /// Passes the block on, with a literal authority replaced.
    fn finish(self, ready: &mut Vec<u8>) {
        let (priority, block) = self.fragment.split_at(self.priority);
        let Some(value) = authority(block) else {
            ready.extend(self.frames);
            return;
        };
        let payload = [priority, &block[..value.start], AUTHORITY, &block[value.end..]].concat();
        let (flags, stream) = (self.frames[4] & !PADDED, &self.frames[5..FRAME_HEADER]);
        let last = payload.chunks(MAX_PAYLOAD).count();
        for (number, chunk) in payload.chunks(MAX_PAYLOAD).enumerate() {
            let (kind, flags) = match number {
                0 => (HEADERS, flags & !END_HEADERS),
                _ => (CONTINUATION, 0),
            };
            let ends = if number + 1 == last { END_HEADERS } else { 0 };
            let length = u32::try_from(chunk.len()).unwrap_or_default().to_be_bytes();
            ready.extend_from_slice(&length[1..]);
            ready.extend_from_slice(&[kind, flags | ends]);
            ready.extend_from_slice(stream);
            ready.extend_from_slice(chunk);
        }
    }
}

/// The range of a literal authority in a field block, including its length; `None` if it is indexed or absent. String
/// literals are skipped by their lengths, without decoding (RFC 7541, 6).
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
        let mut is_authority = index == AUTHORITY_INDEX;
        if index == 0 {
            let end = text_end(block, at)?;
            is_authority = AUTHORITY_NAMES.contains(&&block[at..end]);
            at = end;
        }
        let end = text_end(block, at)?;
        if is_authority {
            return Some(at..end);
        }
        at = end;
    }
    None
}

/// The integer with a prefix of `bits` bits in this byte, and the index after it (RFC 7541, 5.1).
fn integer(block: &[u8], at: usize, bits: u32) -> Option<(usize, usize)> {
    let most = (1_usize << bits) - 1;
    let first = usize::from(*block.get(at)?) & most;
    if first < most {
        return Some((first, at + 1));
    }
    let mut value = most;
    // Three more bytes suffice for any length within a block.
    for (index, byte) in block[at + 1..].iter().take(3).enumerate() {
        value += usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value, at + 2 + index));
        }
    }
    None
}

/// The end of the string literal that begins here (RFC 7541, 5.2).
fn text_end(block: &[u8], at: usize) -> Option<usize> {
    let (length, begin) = integer(block, at, 7)?;
    let end = begin + length;
    (end <= block.len()).then_some(end)
}

#[cfg(test)]
pub(super) mod tests;
