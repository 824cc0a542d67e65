"""Assembles the image: `scripts/image/build` calls it with the driver that it has built.

    assemble.py --arch amd64 --out DIR --apt DIR --program FILE... [--within NAME=VERSION]...
    assemble.py --arch amd64 --out DIR --apt DIR               the tools only, for tests
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import crates
from apt import Apt, Missing
from elf import Elf, is_elf
from layer import gzip, layer
from oci import About, archive
from root import Entry, Root, tools_root
from sbom import Driver, sbom

PROJECT = Path(__file__).resolve().parents[2]
LIMIT = 25_000_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", choices=["amd64", "arm64"], required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--apt", type=Path, required=True)
    parser.add_argument("--name", default="diskplugin.csi.example/diskplugin")
    parser.add_argument("--program", type=Path, action="append", default=[])
    parser.add_argument("--within", action="append", default=[])
    parser.add_argument("--quick", action="store_true", help="for tests: hardly compressed, and of any size")
    arguments = parser.parse_args()

    effort = 1 if arguments.quick else 9
    apt = Apt(arguments.apt.resolve(), arguments.arch)
    apt.update()
    tools = tools_root(apt, PROJECT / "scripts/image/tools")
    layers = [("filesystem tools and CA certificates of Debian", layer(tools.entries, effort))]
    driver = Root()
    if arguments.program:
        for program in arguments.program:
            data = program.read_bytes()
            check(program.name, data, arguments.arch)
            driver.add(program.name, Entry(0o755, data))
        driver.add("usr/share/doc/diskplugin/LICENSE", Entry(0o644, (PROJECT / "LICENSE").read_bytes()))
        layers.append(("the driver", layer(driver.entries, effort)))

    own = crates.own_package(PROJECT)
    about = About(
        arguments.name, own["version"], arguments.arch, own["description"], revision(), epoch()
    )
    tar, manifest = archive(about, layers)
    target = {"amd64": "x86_64", "arm64": "aarch64"}[arguments.arch] + "-unknown-linux-gnu"
    built = None
    if arguments.program:
        built = Driver(crates.crates(PROJECT, target), crates.rust(), arguments.within)
    bill = sbom(about, manifest, tools, built)

    arguments.out.mkdir(parents=True, exist_ok=True)
    title = f"diskplugin-{about.version}-{about.arch}"
    (arguments.out / f"{title}.tar").write_bytes(tar)
    (arguments.out / f"{title}.spdx.json").write_bytes(bill)
    if arguments.program and not arguments.quick:
        show(tools, driver, tar)
    print(f"{arguments.out / title}.tar: {about.name}:{about.version}, {manifest}")
    if len(tar) > LIMIT and not arguments.quick:
        raise Missing(f"the image has {len(tar)} bytes, more than the {LIMIT} that it may have")


def check(name: str, data: bytes, arch: str) -> None:
    """A program of the driver must need nothing of the image."""
    if not is_elf(data):
        raise Missing(f"{name} is not an ELF file")
    elf = Elf(data)
    if elf.arch != arch or elf.needed or elf.interpreter:
        raise Missing(f"{name} is of {elf.arch} and needs {elf.needed or 'nothing'}: wanted is a static one of {arch}")


def git(*words: str) -> str | None:
    """Output of git; None outside a git repository, such as in an unpacked archive."""
    try:
        done = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def revision() -> str | None:
    """The commit, and whether it is all."""
    commit = git("rev-parse", "HEAD")
    return commit and commit + ("-dirty" if git("status", "--porcelain") else "")


def epoch() -> int:
    """https://reproducible-builds.org/specs/source-date-epoch/, else the last commit's time."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct") or 0)


def show(tools: Root, driver: Root, tar: bytes) -> None:
    """Sizes by part, largest first. Parts are compressed one by one, so that their sum is not quite the whole."""
    rows = []
    for package, paths in tools.packages.values():
        data = b"".join(tools.entries[path].data or b"" for path in sorted(paths))
        rows.append((len(gzip(data)), len(data), f"{package.name} {package.version}"))
    for path, entry in driver.entries.items():
        if entry.data and entry.mode & 0o111:
            rows.append((len(gzip(entry.data or b"")), len(entry.data or b""), path))
    print(f"{'compressed':>12} {'unpacked':>12}  part")
    for compressed, unpacked, what in sorted(rows, reverse=True):
        print(f"{compressed:>12} {unpacked:>12}  {what}")
    print(f"{len(tar):>12} {sum(row[1] for row in rows):>12}  the archive, of at most {LIMIT}")


if __name__ == "__main__":
    try:
        main()
    except Missing as missing:
        sys.exit(f"image: {missing}")
