"""The crates of the image's build, by Cargo: those that are in the binary, and those that only make it."""

import re
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

LINE = re.compile(r"(?P<name>\S+) v(?P<version>\S+)(?: \([^)]*\))*\|(?P<licence>.*)")


@dataclass(frozen=True, order=True)
class Crate:
    """A crate in a version, with its licence and the hash of Cargo.lock."""

    name: str
    version: str
    licence: str
    sha256: str | None


def crates(project: Path, target: str) -> tuple[list[Crate], list[Crate]]:
    """Those whose code is in the binary, and those that are needed besides: for build scripts and macros."""
    linked = tree(project, target, "normal,no-proc-macro")
    return sorted(linked), sorted(tree(project, target, "normal,build") - linked)


def tree(project: Path, target: str, edges: str) -> set[Crate]:
    """The crates that Cargo resolves for the target, with the features of the image and without the project itself."""
    lock = tomllib.loads((project / "Cargo.lock").read_text())
    hashes = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    own = own_package(project)["name"]
    command = ["cargo", "tree", "--locked", "--no-default-features", "--target", target, "--edges", edges,
               "--package", own,
               "--prefix", "none", "--no-dedupe", "--format", "{p}|{l}"]  # fmt: skip
    listed = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True).stdout
    found = set()
    for line in set(listed.splitlines()) - {""}:
        match = LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"cargo tree: {line}")
        name, version = match["name"], match["version"]
        if name != own:
            # A slash was how crates wrote "or" before SPDX.
            licence = match["licence"].replace("/", " OR ")
            found.add(Crate(name, version, re.sub(r" +", " ", licence), hashes[name, version]))
    return found


def own_package(project: Path) -> dict:
    """`[package]` of the project's Cargo.toml."""
    return tomllib.loads((project / "Cargo.toml").read_text())["package"]


def rust() -> str:
    """The version of the compiler, and of its standard library."""
    said = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[1]
