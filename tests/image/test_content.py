"""The image has exactly the programs that the driver uses, and their dependencies."""

import os
import posixpath
import re
import unittest

from image import ARCH, OURS, PROJECT, Image, left_out, readelf

RELEASE = "12"
LIST = PROJECT / f"tests/image/{ARCH}.paths"
MACHINE = {"amd64": "Advanced Micro Devices X86-64", "arm64": "AArch64"}
# Where the loader of Debian looks, without a cache and without RPATH.
FOLDERS = [f"{top}/{triple}" for triple in ("x86_64-linux-gnu", "aarch64-linux-gnu") for top in ("lib", "usr/lib")]
# Started by the demo, which the image does not have; nor does it have the crate of the fake cloud.
NOT_IN_IT = re.compile(r"^src/app/demo/")


class Content(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.image = Image()

    def resolved(self, path: str) -> str | None:
        """The file that a path leads to, through links of the image; none where there is none."""
        done, rest, hops = "", path.strip("/").split("/"), 0
        while rest:
            step = posixpath.normpath(posixpath.join(done, rest.pop(0))).lstrip("/")
            entry = self.image.entries.get(step)
            if entry is None or hops > 20:
                return None
            if entry.issym():
                hops += 1
                target = posixpath.normpath(posixpath.join("/", done, entry.linkname))
                rest, done = target.strip("/").split("/") + rest, ""
            else:
                done = step
        return done

    def test_the_files_are_those_of_the_list(self):
        there = []
        for path, entry in sorted(self.image.entries.items()):
            if path not in OURS:
                kind = "d" if entry.isdir() else "l" if entry.issym() else "-"
                there.append(f"{kind} {entry.mode:04o} {path}" + (f" -> {entry.linkname}" if entry.issym() else ""))
        text = "".join(line + "\n" for line in there)
        if os.environ.get("UPDATE"):
            LIST.write_text(text)
        release = re.search(r'^VERSION_ID="(.*)"', self.image.data["usr/lib/os-release"].decode(), re.MULTILINE)
        if release is None or release[1] != RELEASE:
            left_out(f"the list of files is of Debian {RELEASE}, the packages here are of another release")
        self.assertEqual(LIST.read_text().splitlines(), there, "UPDATE=1 tests/image/run updates it")

    def test_the_drivers_layer_adds_the_driver_and_its_licence(self):
        if len(self.image.layers) > 1:
            self.assertLessEqual(OURS, set(self.image.entries))

    def test_no_link_leads_nowhere(self):
        for path, entry in self.image.entries.items():
            if entry.issym():
                self.assertIsNotNone(self.resolved(path), f"{path} -> {entry.linkname}")

    def test_nobody_becomes_root_by_a_file(self):
        for path, entry in self.image.entries.items():
            if path != "tmp" and not entry.issym():
                self.assertEqual(entry.mode & 0o7022, 0, f"{path} {entry.mode:o}")
        self.assertEqual(self.image.entries["tmp"].mode, 0o1777)

    def test_there_is_no_shell_and_no_script(self):
        for path, data in self.image.data.items():
            if self.image.entries[path].mode & 0o111:
                self.assertIsNotNone(readelf(data), path)
        for name in ("sh", "bash", "dash", "busybox"):
            self.assertFalse([path for path in self.image.entries if posixpath.basename(path) == name])

    def test_every_program_and_library_is_of_the_machine_and_finds_what_it_needs(self):
        programs = 0
        for path, data in self.image.data.items():
            elf = readelf(data)
            if elf is None:
                continue
            programs += 1
            self.assertEqual(elf["machine"], [MACHINE[ARCH]], path)
            for name in elf["needed"]:
                # Also lib and lib64: the loader is there, and programs need it by its own name.
                at = [self.resolved(f"{folder}/{name}") for folder in [*FOLDERS, "lib", "lib64"]]
                self.assertTrue(any(at), f"{path} needs {name}")
            for loader in elf["interpreter"]:
                self.assertIsNotNone(self.resolved(loader), f"{path} is loaded by {loader}")
        self.assertGreater(programs, 20)

    def test_every_library_is_needed_by_something(self):
        needed = {"libgcc_s.so.1"}
        for data in self.image.data.values():
            elf = readelf(data) or {"needed": [], "interpreter": []}
            needed.update(elf["needed"], map(posixpath.basename, elf["interpreter"]))
        libraries = {posixpath.basename(p) for p in self.image.data if p.startswith("usr/lib") and ".so" in p}
        self.assertEqual(libraries - needed, set())

    def test_every_command_that_the_driver_starts_is_there_and_no_other(self):
        commands = set()
        for path in sorted((PROJECT / "src").rglob("*.rs")):
            if NOT_IN_IT.match(str(path.relative_to(PROJECT))) or path.name == "tests.rs" or "tests" in path.parts:
                continue
            text = path.read_text().split("#[cfg(test)]")[0]
            commands.update(re.findall(r'Command::new\((?:format!\()?"([^"]+)"', text))
        self.assertIn("mkfs.{filesystem}", commands)
        commands.remove("mkfs.{filesystem}")
        commands |= {f"mkfs.{filesystem}" for filesystem in ("ext3", "ext4", "xfs", "btrfs")}
        folders = {"usr/sbin", "usr/bin"}
        there = {posixpath.basename(p) for p in self.image.entries if posixpath.dirname(p) in folders}
        # Targets of links.
        there -= {"mke2fs"}
        self.assertEqual(commands, there)

    def test_every_package_comes_with_its_licence_and_record(self):
        records = {posixpath.basename(p) for p in self.image.data if p.startswith("var/lib/dpkg/status.d/")}
        self.assertGreater(len(records), 10)
        for name in records:
            self.assertGreater(len(self.image.data[f"usr/share/doc/{name}/copyright"]), 100, name)
            record = self.image.data[f"var/lib/dpkg/status.d/{name}"].decode()
            self.assertRegex(record, rf"(?m)^Package: {re.escape(name)}$")
            self.assertRegex(record, r"(?m)^Version: \S+$")

    def test_root_and_the_controllers_user_have_names(self):
        passwd = self.image.data["etc/passwd"].decode()
        users = {int(line.split(":")[2]): line.split(":")[0] for line in passwd.splitlines()}
        self.assertEqual(users, {0: "root", 65532: "nonroot"})
        self.assertIn("hosts: files dns", self.image.data["etc/nsswitch.conf"].decode())
