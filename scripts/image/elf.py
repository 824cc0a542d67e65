"""The libraries that a 64-bit little-endian ELF file needs. The file is not executed: it may be of another architecture."""

import struct

MACHINES = {62: "amd64", 183: "arm64"}
LOAD, DYNAMIC, INTERPRETER = 1, 2, 3
NEEDED, STRINGS, SONAME, STRINGS_SIZE = 1, 5, 14, 10


class Elf:
    """The machine, the loader, and the libraries by name."""

    def __init__(self, data: bytes):
        self.arch = MACHINES.get(struct.unpack_from("<H", data, 18)[0])
        (table,) = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        # Type, offset in the file, address in memory, length in the file.
        headers = []
        for index in range(count):
            at = table + index * size
            kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, at)
            headers.append((kind, offset, address, length))

        def in_file(address: int) -> int:
            for kind, offset, start, length in headers:
                if kind == LOAD and start <= address < start + length:
                    return offset + address - start
            raise ValueError(f"address {address:#x} is not in the file")

        self.interpreter = None
        dynamic: list[tuple[int, int]] = []
        for kind, offset, _, length in headers:
            if kind == INTERPRETER:
                self.interpreter = data[offset : offset + length].rstrip(b"\0").decode()
            elif kind == DYNAMIC:
                dynamic = list(struct.iter_unpack("<qQ", data[offset : offset + length]))
        facts = dict(dynamic)
        if STRINGS not in facts:
            self.needed, self.soname, self._strings = [], None, b""
            return
        start = in_file(facts[STRINGS])
        self._strings = data[start : start + facts[STRINGS_SIZE]]
        self.needed = [self._string(value) for tag, value in dynamic if tag == NEEDED]
        self.soname = self._string(facts[SONAME]) if SONAME in facts else None

    def _string(self, at: int) -> str:
        return self._strings[at : self._strings.index(b"\0", at)].decode()

    def names(self, symbol: str) -> bool:
        """Whether it defines the symbol or wants it of another."""
        return b"\0" + symbol.encode() + b"\0" in self._strings


def is_elf(data: bytes) -> bool:
    """Whether it is a file that `Elf` can read."""
    return data[:6] == b"\x7fELF\x02\x01"
