"""Each tool of the image runs in it and does its work for the node."""

import os
import ssl
import subprocess
import unittest

from box import Box, Disk, mount
from image import Image, foreign

MIB = 1 << 20
VERSIONS = {
    "mkfs.ext3": ["-V"],
    "mkfs.ext4": ["-V"],
    "e2fsck": ["-V"],
    "mkfs.xfs": ["-V"],
    "xfs_growfs": ["-V"],
    "xfs_repair": ["-V"],
    "mkfs.btrfs": ["--version"],
    "btrfs": ["--version"],
    "blkid": ["--version"],
    "blockdev": ["--version"],
    "sfdisk": ["--version"],
    "partx": ["--version"],
}
LOOK = {
    "ext3": ["e2fsck", "-f", "-n"],
    "ext4": ["e2fsck", "-f", "-n"],
    "xfs": ["xfs_repair", "-n"],
    "btrfs": ["btrfs", "check"],
}


class Tools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.box = Box()
        cls.addClassCleanup(cls.box.close)

    def test_every_tool_tells_its_version(self):
        for tool, arguments in VERSIONS.items():
            with self.subTest(tool):
                done = self.box.run(tool, *arguments)
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertRegex(done.stdout, r"\d+\.\d+")
        # It has no flag for that; the version is in its usage.
        self.assertRegex(self.box.run("resize2fs").stdout, r"^resize2fs \d+\.\d+")

    def succeed(self, program: str, *arguments: str) -> str:
        done = self.box.run(program, *arguments)
        self.assertEqual(done.returncode, 0, f"{program}: {done.stdout}")
        return done.stdout

    def test_the_only_partition_of_a_disk_is_grown(self):
        file = self.box.root / "tmp/partitioned"
        file.touch()
        self.addCleanup(file.unlink)
        os.truncate(file, 64 * MIB)
        inside = "/tmp/partitioned"
        done = self.box.run("sfdisk", "--quiet", inside, stdin="label: gpt\n,\n")
        self.assertEqual(done.returncode, 0, done.stdout)
        os.truncate(file, 128 * MIB)
        grow = ["--quiet", "--no-reread", "--no-tell-kernel", "-N", "1", inside]
        done = self.box.run("sfdisk", *grow, stdin=", +\n")
        self.assertEqual(done.returncode, 0, done.stdout)
        partitions = self.succeed("partx", "--show", "--noheadings", "--bytes", "--output", "SIZE", inside)
        self.assertGreater(int(partitions), 125 * MIB)

    def test_an_ext3_filesystem_is_made_known_checked_and_grown(self):
        self.life("ext3")

    def test_an_ext4_filesystem_is_made_known_checked_and_grown(self):
        self.life("ext4")

    def test_an_xfs_filesystem_is_made_known_checked_and_grown(self):
        self.life("xfs")

    def test_a_btrfs_filesystem_is_made_known_checked_and_grown(self):
        self.life("btrfs")

    def life(self, filesystem: str):
        if foreign():
            self.emulated_life(filesystem)
            return
        disk = Disk(self.box.folder, 400 * MIB)
        self.addCleanup(disk.close)
        # As the node has it: exit code 2 is "nothing there".
        self.assertEqual(self.box.run("blkid", "-p", "-o", "export", "--", disk.device).returncode, 2)
        self.succeed(f"mkfs.{filesystem}", disk.device)
        self.assertIn(f"TYPE={filesystem}\n", self.succeed("blkid", "-p", "-o", "export", "--", disk.device))
        self.succeed(*LOOK[filesystem], disk.device)
        before = self.size(filesystem, disk)
        disk.grow(600 * MIB)
        self.assertEqual(int(self.succeed("blockdev", "--getsize64", disk.device)), 600 * MIB)
        if filesystem.startswith("ext"):
            self.succeed("e2fsck", "-p", "-E", "journal_only", disk.device)
            self.succeed("e2fsck", "-f", "-p", disk.device)
            self.succeed("resize2fs", disk.device)
        else:
            grow = {"xfs": ["xfs_growfs", "-d"], "btrfs": ["btrfs", "filesystem", "resize", "max"]}
            self.mount(filesystem, disk)
            self.succeed(*grow[filesystem], "/tmp/mounted")
            self.unmount()
        self.assertGreater(self.size(filesystem, disk), before + 150 * MIB)
        self.succeed(*LOOK[filesystem], disk.device)
        self.succeed("blockdev", "--setro", disk.device)
        self.succeed("blockdev", "--setrw", disk.device)

    def emulated_life(self, filesystem: str):
        """In a file, because the emulator of programs does not support ioctls of block devices."""
        print(f"LEFT OUT: growing {filesystem} on a device, which takes a machine of the image's own", flush=True)
        file = self.box.root / "tmp" / filesystem
        file.touch()
        os.truncate(file, 400 * MIB)
        inside = f"/tmp/{filesystem}"
        self.succeed(f"mkfs.{filesystem}", inside)
        self.assertIn(f"TYPE={filesystem}\n", self.succeed("blkid", "-p", "-o", "export", "--", inside))
        self.succeed(*LOOK[filesystem], inside)
        if filesystem.startswith("ext"):
            os.truncate(file, 600 * MIB)
            self.assertIn("Resizing the filesystem", self.succeed("resize2fs", inside))
            self.succeed(*LOOK[filesystem], inside)
        file.unlink()

    def size(self, filesystem: str, disk: Disk) -> int:
        """The mounts, as the kernel lists them."""
        self.mount(filesystem, disk)
        facts = os.statvfs(self.box.mounted)
        self.unmount()
        return facts.f_blocks * facts.f_frsize

    def mount(self, filesystem: str, disk: Disk) -> None:
        mount("-t", filesystem, disk.device, self.box.mounted)

    def unmount(self) -> None:
        subprocess.run(["umount", self.box.mounted], check=True)


class Certificates(unittest.TestCase):
    def test_the_bundle_is_what_a_client_reads(self):
        bundle = Image().data["etc/ssl/certs/ca-certificates.crt"].decode()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=bundle)
        known = context.get_ca_certs()
        self.assertGreater(len(known), 100)
        self.assertEqual(len(known), bundle.count("BEGIN CERTIFICATE"))
