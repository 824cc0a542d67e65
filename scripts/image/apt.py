"""Debian's packages of any architecture: resolved and downloaded by apt, never installed.

apt gets lists and settings of its own below the target directory. So this needs no root, does not touch the
machine's apt, and is the same for an architecture that the machine does not have."""

import hashlib
import os
import subprocess
import tarfile
from pathlib import Path

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Missing(Exception):
    """Something of Debian that cannot be had, in a sentence."""


class Apt:
    """apt for one architecture, with the Debian archives that the machine's own apt has."""

    def __init__(self, home: Path, arch: str):
        self.arch = arch
        self.debs = home / "debs"
        self._loaded: dict[str, Package] = {}
        for folder in ("lists/partial", "cache/archives/partial", "debs"):
            (home / folder).mkdir(parents=True, exist_ok=True)
        (home / "status").write_text("")
        (home / "sources.list").write_text(sources(home))
        (home / "apt.conf").write_text(
            # Its settings are not for this, but how the archives are reached is.
            'Dir::Etc::main "/dev/null";\n'
            'Dir::Etc::parts "/dev/null";\n'
            + reached()
            + f'APT::Architecture "{arch}";\n'
            "#clear APT::Architectures;\n"
            f'APT::Architectures {{ "{arch}"; }};\n'
            'APT::Sandbox::User "root";\n'
            f'Dir::State::lists "{home}/lists";\n'
            f'Dir::State::status "{home}/status";\n'
            f'Dir::Cache "{home}/cache";\n'
            f'Dir::Etc::sourcelist "{home}/sources.list";\n'
            'Dir::Etc::sourceparts "/dev/null";\n'
            'Acquire::Languages "none";\n'
            'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";\n'
        )
        self._env = {**os.environ, "APT_CONFIG": str(home / "apt.conf"), "LC_ALL": "C"}

    def update(self) -> None:
        """Asks the archives for news; without network the lists of the last time must do."""
        done = self._run("apt-get", "update", "-qq", check=False)
        if done.returncode != 0 and not list((self.debs.parent / "lists").glob("*_Packages*")):
            raise Missing(f"no package lists for {self.arch}: {done.stderr.strip()}")

    def package(self, name: str) -> "Package":
        """The package in the version that would be installed, downloaded and verified by apt."""
        if name not in self._loaded:
            self._loaded[name] = Package(self._download(name))
        return self._loaded[name]

    def _download(self, name: str) -> Path:
        fields = stanza(self._run("apt-cache", "show", "--no-all-versions", name, check=False).stdout)
        if "Version" not in fields:
            raise Missing(f"Debian has no package {name} for {self.arch}")
        # apt writes a version's colon as %3a.
        version = fields["Version"].replace(":", "%3a")
        deb = self.debs / f"{name}_{version}_{fields['Architecture']}.deb"
        # apt verifies its own downloads; this hash is from the signed lists.
        if not deb.exists() or hashlib.sha256(deb.read_bytes()).hexdigest() != fields["SHA256"]:
            deb.unlink(missing_ok=True)
            self._run("apt-get", "download", "-qq", f"{name}={fields['Version']}", cwd=self.debs)
        for old in self.debs.glob(f"{name}_*.deb"):
            if old != deb:
                old.unlink()
        return deb

    def _run(self, *command: str, check: bool = True, cwd: Path | None = None) -> subprocess.CompletedProcess:
        done = subprocess.run(command, env=self._env, cwd=cwd, capture_output=True, text=True)
        if check and done.returncode != 0:
            raise Missing(f"{' '.join(command)}: {done.stderr.strip()}")
        return done


def sources(home: Path) -> str:
    """The machine's archives that are Debian's own: the image has no other packages."""
    wanted = archives()
    if not wanted:
        # The machine's package lists may be missing; ours are stored elsewhere, which needs no root.
        lists = home / "machine"
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        settings = ["-o", f"Dir::State::lists={lists}", "-o", "APT::Sandbox::User=root"]
        subprocess.run(["apt-get", *settings, "update", "-qq"], capture_output=True)
        wanted = archives(*settings)
    if not wanted:
        raise Missing("apt has none of Debian's archives among its sources, or cannot reach them")
    signed = f"[signed-by={KEYRING}] " if os.path.exists(KEYRING) else ""
    return "".join(f"deb {signed}{uri} {release} {component}\n" for uri, release, component in wanted)


def archives(*settings: str) -> list[tuple[str, ...]]:
    """Address, release and component, as far as apt has a list of them."""
    fields = "$(ORIGIN)|$(CREATED_BY)|$(COMPONENT)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    command = ["apt-get", *settings, "indextargets", "--format", fields]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = {tuple(line.split("|")) for line in listed.splitlines()}
    return sorted(row[3:] for row in rows if row[:3] == ("Debian", "Packages", "main"))


def reached() -> str:
    """The machine's proxies, certificates and timeouts."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    wanted = ("Acquire::http", "Acquire::https", "Acquire::Retries", "Acquire::ForceIPv")
    return "".join(line + "\n" for line in dump.splitlines() if line.startswith(wanted))


class Package:
    """A package's facts and files, with one tree below /usr whatever the package itself has."""

    def __init__(self, deb: Path):
        control = ["dpkg-deb", "--field", str(deb)]
        self.control = subprocess.run(control, capture_output=True, text=True, check=True).stdout
        fields = stanza(self.control)
        self.name, self.version, self.arch = fields["Package"], fields["Version"], fields["Architecture"]
        self.source = fields.get("Source", self.name).split(" ")[0]
        self.homepage = fields.get("Homepage")
        self.depends = [
            choice.split("|")[0].split("(")[0].split(":")[0].strip()
            for key in ("Pre-Depends", "Depends")
            for choice in fields.get(key, "").split(",")
            if choice.strip()
        ]
        self.files: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        self.modes: dict[str, int] = {}
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as process:
            with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
                for member in tar:
                    path = merged(member.name)
                    if member.issym():
                        self.links[path] = member.linkname
                    elif member.islnk():
                        first = merged(member.linkname)
                        self.files[path], self.modes[path] = self.files[first], self.modes[first]
                    elif member.isfile():
                        self.files[path] = tar.extractfile(member).read()
                        self.modes[path] = member.mode
            if process.wait() != 0:
                raise Missing(f"{deb} cannot be unpacked")


def merged(path: str) -> str:
    """`./sbin/x` and `./usr/sbin/x` are both `usr/sbin/x`."""
    path = path.removeprefix("./").strip("/")
    top = path.split("/")[0]
    return f"usr/{path}" if top in ("bin", "sbin", "lib", "lib64") else path


def stanza(text: str) -> dict[str, str]:
    """The first paragraph of a control file; continued lines are joined."""
    fields: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        if not line.strip():
            break
        if line[0] in " \t":
            fields[key] += "\n" + line.strip()
        else:
            key, _, value = line.partition(":")
            fields[key] = value.strip()
    return fields
