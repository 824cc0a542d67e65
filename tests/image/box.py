"""The image's tree as the root of commands, as in a container whose root filesystem is only read."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from image import ARCH, Image, foreign, left_out

PATH = {"PATH": "/usr/sbin:/usr/bin", "LC_ALL": "C"}
EMULATOR = {"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}[ARCH]
PATIENCE = 120


class Box:
    """Needs root. Its mounts end with the mount namespace that the tests run in; `close` unmounts them too."""

    def __init__(self):
        if os.geteuid() != 0:
            left_out("to run what is in the image needs root")
        if os.readlink("/proc/self/ns/mnt") == os.readlink(f"/proc/{os.getppid()}/ns/mnt"):
            left_out("to run what is in the image needs a mount namespace (unshare)")
        self.emulator = []
        found = shutil.which(EMULATOR)
        if foreign() and found is None:
            left_out(f"to run programs of {ARCH} here needs {EMULATOR} (scripts/setup image {ARCH})")
        self.folder = Path(tempfile.mkdtemp(prefix="diskplugin-image-"))
        self.root = self.folder / "root"
        self.root.mkdir()
        Image().unpack(self.root)
        mount("--bind", self.root, self.root)
        mount("-t", "tmpfs", "tmpfs", self.root / "tmp")
        mount("-t", "proc", "proc", self.root / "proc")
        mount("--rbind", "/dev", self.root / "dev")
        mount("-o", "remount,bind,ro", self.root)
        if foreign():
            shutil.copy2(found, self.root / "tmp/emulator")
            self.emulator = ["/tmp/emulator"]
        self.mounted = self.root / "tmp/mounted"
        self.mounted.mkdir()

    def command(self, program: str, *arguments: str, user: str | None = None) -> list[str]:
        """The command line, with the program as PATH finds it in the image."""
        at = [f"{folder}/{program}" for folder in ("/usr/sbin", "/usr/bin", "")]
        path = next(p for p in at if os.path.lexists(f"{self.root}{p}"))
        switch = [f"--userspec={user}"] if user else []
        return ["chroot", *switch, str(self.root), *self.emulator, path, *arguments]

    def run(
        self, program: str, *arguments: str, user: str | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess:
        """Runs the program with the environment of a container. Its stdout and stderr are returned together."""
        return subprocess.run(
            self.command(program, *arguments, user=user),
            env={**os.environ, **PATH}, input=stdin, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=PATIENCE,
        )  # fmt: skip

    def close(self):
        """Leaves nothing behind."""
        subprocess.run(["umount", "--lazy", "--recursive", self.root], check=True)
        shutil.rmtree(self.folder)


def mount(*arguments: object) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


class Disk:
    """A loop device, of a file that can grow."""

    def __init__(self, folder: Path, size: int):
        self.file = folder / "disk"
        self.file.touch()
        os.truncate(self.file, size)
        attach = ["flock", "/dev", "losetup", "--find", "--show", str(self.file)]
        done = subprocess.run(attach, capture_output=True, text=True)
        if done.returncode != 0:
            self.file.unlink()
            left_out(f"making filesystems needs loop devices: {done.stderr.strip()}")
        self.device = done.stdout.strip()

    def grow(self, size: int) -> None:
        os.truncate(self.file, size)
        subprocess.run(["losetup", "--set-capacity", self.device], check=True)

    def close(self) -> None:
        subprocess.run(["losetup", "--detach", self.device], check=True)
        self.file.unlink()
