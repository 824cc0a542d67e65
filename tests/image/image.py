"""Reads the image as a container engine does. It shares no code with the scripts that assemble it."""

import functools
import hashlib
import io
import json
import os
import subprocess
import tarfile
import tempfile
import tomllib
import unittest
import zlib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
ARCH = os.environ["IMAGE_ARCH"]
FOLDER = Path(os.environ["IMAGE_FOLDER"])
VERSION = tomllib.loads((PROJECT / "Cargo.toml").read_text())["package"]["version"]
ARCHIVE = FOLDER / f"diskplugin-{VERSION}-{ARCH}.tar"
# The files of the driver's layer, if the image has one.
OURS = {
    "diskplugin",
    "diskplugin-controller",
    "diskplugin-node",
    "usr/share/doc/diskplugin",
    "usr/share/doc/diskplugin/LICENSE",
}


def left_out(reason: str) -> None:
    """Skips the test aloud, and fails it where nothing may be skipped."""
    if os.environ.get("CI"):
        raise AssertionError(f"{reason}, and CI skips nothing")
    print(f"SKIPPED: {reason}", flush=True)
    raise unittest.SkipTest(reason)


def foreign() -> bool:
    """Whether the image is of another architecture than this machine."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine) != ARCH


class Image:
    """The archive's files, and the tree that its layers make."""

    def __init__(self, archive: Path = ARCHIVE):
        with tarfile.open(archive) as tar:
            self.members = tar.getmembers()
            self.files = {m.name: tar.extractfile(m).read() for m in self.members if m.isfile()}
        self.index = json.loads(self.files["index.json"])
        self.manifest = json.loads(self.blob(self.index["manifests"][0]))
        self.config = json.loads(self.blob(self.manifest["config"]))
        self.layers = [zlib.decompress(self.blob(one), wbits=31) for one in self.manifest["layers"]]
        self.entries: dict[str, tarfile.TarInfo] = {}
        self.data: dict[str, bytes] = {}
        for layer in self.layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
                for member in tar:
                    self.entries[member.name] = member
                    if member.isfile():
                        self.data[member.name] = tar.extractfile(member).read()

    def blob(self, descriptor: dict) -> bytes:
        """The content of the descriptor, checked against its digest."""
        data = self.files["blobs/" + descriptor["digest"].replace(":", "/")]
        assert digest(data) == descriptor["digest"], descriptor
        assert len(data) == descriptor["size"], descriptor
        return data

    def unpack(self, folder: Path) -> None:
        """Writes the tree, as its owners where this is root."""
        for layer in self.layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
                tar.extractall(folder)  # noqa: S202


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


@functools.cache
def readelf(data: bytes) -> dict[str, list[str]] | None:
    """The machine, the needed libraries and the loader; None for a file that is not ELF."""
    if data[:4] != b"\x7fELF":
        return None
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        command = ["readelf", "--wide", "--file-header", "--dynamic", "--program-headers", file.name]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    facts: dict[str, list[str]] = {"machine": [], "needed": [], "interpreter": []}
    for line in said.splitlines():
        if "Machine:" in line:
            facts["machine"].append(line.split(":")[1].strip())
        elif "(NEEDED)" in line:
            facts["needed"].append(line.split("[")[1].split("]")[0])
        elif "program interpreter:" in line:
            facts["interpreter"].append(line.split(": ")[1].split("]")[0])
    return facts
