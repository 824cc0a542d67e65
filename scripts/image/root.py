"""The files of the image: those that `tools` lists, their libraries, and files that are in no package."""

import posixpath
import re
from dataclasses import dataclass, field
from pathlib import Path

from apt import Apt, Missing, Package, merged
from elf import Elf, is_elf

BUNDLE = "etc/ssl/certs/ca-certificates.crt"
CERTIFICATES = "usr/share/ca-certificates"
TRIPLES = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
# glibc opens it by itself in a program that ends or cancels threads; no program says that it needs it.
UNWINDER = "libgcc_s.so.1"
UNWINDING = ("pthread_cancel", "pthread_exit")
NONROOT = 65532
# Packages name a licence that many have, and one of them has its text.
LICENCES = "usr/share/common-licenses"
LICENCE = re.compile(rb"/usr/share/common-licenses/([A-Za-z]+(?:-[0-9]+(?:\.[0-9]+)*)?)")


@dataclass
class Entry:
    """A file, a link or a directory, of root's."""

    mode: int
    data: bytes | None = None
    link: str | None = None


@dataclass
class Root:
    """A tree by path, and which packages are in it with which paths."""

    entries: dict[str, Entry] = field(default_factory=dict)
    packages: dict[str, tuple[Package, list[str]]] = field(default_factory=dict)

    def add(self, path: str, entry: Entry, package: Package | None = None) -> None:
        """Adds it, and the directories above it."""
        above = posixpath.dirname(path)
        if above and above not in self.entries:
            self.add(above, Entry(0o755))
        self.entries[path] = entry
        if package:
            self.packages.setdefault(package.name, (package, []))[1].append(path)


def tools_root(apt: Apt, listed: Path) -> Root:
    """Everything of the image but the driver itself."""
    root = Root()
    for path, mode in {"dev": 0o755, "proc": 0o755, "sys": 0o755, "run": 0o755, "tmp": 0o1777}.items():
        root.add(path, Entry(mode))
    for name in ("bin", "sbin", "lib", "lib64"):
        root.add(f"usr/{name}", Entry(0o755))
        root.add(name, Entry(0o777, link=f"usr/{name}"))
    for line in listed.read_text().splitlines():
        if line and not line.startswith("#"):
            name, path = line.split()
            if path == CERTIFICATES:
                bundle(root, apt.package(name))
            else:
                take(root, apt.package(name), path, path)
    for path, entry in root.entries.items():
        if entry.link and posixpath.normpath(posixpath.join(posixpath.dirname(path), entry.link)) not in root.entries:
            raise Missing(f"{path} leads to {entry.link}, which is not in {listed}")
    libraries(root, apt)
    accounts(root)
    for package, _ in list(root.packages.values()):
        papers(root, apt, package)
    named = {name for entry in root.entries.values() for name in LICENCE.findall(entry.data or b"")}
    for name in sorted(named):
        licence(root, apt.package("base-files"), f"{LICENCES}/{name.decode()}")
    return root


def take(root: Root, package: Package, path: str, to: str) -> None:
    """Adds one path of a package."""
    if path in package.links:
        root.add(to, Entry(0o777, link=package.links[path]), package)
    elif path in package.files:
        # 0o755: a set-user-ID bit of the package is dropped.
        root.add(to, Entry(package.modes[path] & 0o755, package.files[path]), package)
    else:
        raise Missing(f"{package.name} {package.version} has no {path}")


def bundle(root: Root, package: Package) -> None:
    """As update-ca-certificates(8) makes it of all that the package has."""
    paths = sorted(p for p in package.files if p.startswith(CERTIFICATES + "/") and p.endswith(".crt"))
    if not paths:
        raise Missing(f"{package.name} {package.version} has no certificates in {CERTIFICATES}")
    data = b"".join(package.files[path].rstrip(b"\n") + b"\n" for path in paths)
    root.add(BUNDLE, Entry(0o644, data), package)


def libraries(root: Root, apt: Apt) -> None:
    """Adds the needed libraries and theirs, each by the name that its user needs."""
    folder = f"usr/lib/{TRIPLES[apt.arch]}"
    wanted = [(path, package) for package, paths in list(root.packages.values()) for path in paths]
    while wanted:
        path, package = wanted.pop()
        data = root.entries[path].data
        if data is None or not is_elf(data):
            continue
        elf = Elf(data)
        if elf.arch != apt.arch:
            raise Missing(f"{path} of {package.name} is of {elf.arch}, not of {apt.arch}")
        names = {name: f"{folder}/{name}" for name in elf.needed}
        if elf.interpreter:
            # The loader is at one place only, however it is asked for.
            names[posixpath.basename(elf.interpreter)] = merged(elf.interpreter)
        if elf.soname != "libc.so.6" and any(elf.names(symbol) for symbol in UNWINDING):
            names[UNWINDER] = f"{folder}/{UNWINDER}"
        for name, to in sorted(names.items()):
            there = any(posixpath.basename(path) == name for path in root.entries)
            if not there:
                owner, found = provider(apt, package, name, {package.name})
                root.add(to, Entry(0o755 if owner.modes[found] & 0o111 else 0o644, owner.files[found]), owner)
                wanted.append((to, owner))


def provider(apt: Apt, package: Package, soname: str, seen: set[str]) -> tuple[Package, str]:
    """The package with the library, among all that the one that needs it depends on. Packages that are named
    after the library are looked into first: all of them would be ten times as much to download."""
    stem = plain(soname.split(".so")[0])
    likely = sorted(package.depends, key=lambda name: not plain(name).startswith(stem))
    for name in [package.name, *likely]:
        try:
            candidate = apt.package(name)
        except Missing:
            continue  # A name that only other packages provide.
        for path in sorted([*candidate.files, *candidate.links]):
            if posixpath.basename(path) == soname and path.startswith("usr/lib"):
                return candidate, followed(candidate, path)
    for name in likely:
        if name not in seen:
            seen.add(name)
            try:
                return provider(apt, apt.package(name), soname, seen)
            except Missing:
                continue
    raise Missing(f"{soname}, which {package.name} needs, is in no package that it depends on")


def followed(package: Package, path: str) -> str:
    """The file at the end of the links within a package."""
    while path in package.links:
        path = merged(posixpath.normpath(posixpath.join("/", posixpath.dirname(path), package.links[path])))
    return path


def plain(name: str) -> str:
    """`libcom_err` and `libcom-err` are the same name."""
    return name.replace("-", "").replace("_", "").lower()


def accounts(root: Root) -> None:
    """Names for the two users, and that names of hosts are asked of files first."""
    root.add("etc/passwd", text(f"root:x:0:0:root:/:/nonexistent\nnonroot:x:{NONROOT}:{NONROOT}:nonroot:/:/nonexistent\n"))
    root.add("etc/group", text(f"root:x:0:\nnonroot:x:{NONROOT}:\n"))
    root.add("etc/nsswitch.conf", text("passwd: files\ngroup: files\nhosts: files dns\n"))


def papers(root: Root, apt: Apt, package: Package) -> None:
    """A package's licences and its dpkg record, which vulnerability scanners read."""
    folder = f"usr/share/doc/{package.name}"
    owner, source = package, folder
    if folder in package.links:
        # Packages of one source share one folder.
        source = posixpath.normpath(posixpath.join("usr/share/doc", package.links[folder]))
        owner = apt.package(posixpath.basename(source))
    path = followed(owner, f"{source}/copyright")
    if path not in owner.files:
        raise Missing(f"{owner.name} {owner.version} has no {path}")
    root.add(f"{folder}/copyright", Entry(0o644, owner.files[path]), package)
    root.add(f"var/lib/dpkg/status.d/{package.name}", text(package.control), package)


def licence(root: Root, package: Package, path: str) -> None:
    """A licence's text, under the name that it is named by."""
    found = followed(package, path)
    if found in package.files:
        root.add(path, Entry(0o644, package.files[found]), package)


def text(content: str) -> Entry:
    """A plain file."""
    return Entry(0o644, content.encode())
