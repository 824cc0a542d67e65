"""Packs a directory tree as a layer. The same tree always gives the same bytes."""

import hashlib
import io
import tarfile
import zlib
from dataclasses import dataclass

from root import Entry


@dataclass
class Layer:
    """The compressed layer, and the digest of the uncompressed one: an image refers to both."""

    blob: bytes
    diff_id: str


def layer(entries: dict[str, Entry], effort: int = 9) -> Layer:
    """All of root's, in the order of the paths, of the beginning of time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(entries):
            entry = entries[path]
            member = tarfile.TarInfo(path)
            member.mode = entry.mode
            if entry.link is not None:
                member.type, member.linkname = tarfile.SYMTYPE, entry.link
            elif entry.data is None:
                member.type = tarfile.DIRTYPE
            else:
                member.size = len(entry.data)
            tar.addfile(member, io.BytesIO(entry.data or b""))
    return Layer(gzip(out.getvalue(), effort), digest(out.getvalue()))


def gzip(data: bytes, effort: int = 9) -> bytes:
    """RFC 1952 without time and name."""
    packer = zlib.compressobj(effort, zlib.DEFLATED, -zlib.MAX_WBITS, 9)
    body = packer.compress(data) + packer.flush()
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    return head + body + zlib.crc32(data).to_bytes(4, "little") + (len(data) % 2**32).to_bytes(4, "little")


def digest(data: bytes) -> str:
    """As images write it."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
