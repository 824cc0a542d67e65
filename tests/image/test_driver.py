"""The driver of the image starts in it, in both roles, as the chart has it."""

import os
import re
import signal
import socket
import subprocess
import time
import unittest

from box import PATH, Box
from image import PROJECT, VERSION, Image, readelf

NONROOT = "65532:65532"
PATIENCE = 60
ROLES = {
    "controller": ["--region=cn-beijing", "--zone=cn-beijing-a", "--cluster-id=image", "--credentials=environment"],
    "node": ["--node-id=i-image", "--zone=cn-beijing-a", "--state-dir=/tmp/state", "--kubelet-dir=/tmp"],
}
# Nobody is called with it.
KEYS = {"ALIBABA_CLOUD_ACCESS_KEY_ID": "of-no-account", "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "of-no-account"}


class Driver(unittest.TestCase):
    def test_it_needs_no_library(self):
        elf = readelf(Image().data["diskplugin"])
        self.assertEqual((elf["needed"], elf["interpreter"]), ([], []))

    def test_it_names_no_folder_of_whoever_built_it(self):
        data = Image().data["diskplugin"]
        for folder in (str(PROJECT), os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo")):
            self.assertFalse(folder.encode() + b"/" in data, folder)


class Started(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.box = Box()
        cls.addClassCleanup(cls.box.close)

    def test_it_tells_its_version_as_both_users(self):
        for user in ("0:0", NONROOT):
            done = self.box.run("diskplugin", "--version", user=user)
            self.assertEqual((done.returncode, done.stdout.strip()), (0, f"diskplugin {VERSION}"))

    def test_it_has_the_roles_of_a_cluster_and_no_fake_cloud(self):
        told = self.box.run("diskplugin", "--help").stdout
        roles = set(re.findall(r"(?m)^  ([a-z-]+) ", told))
        self.assertLessEqual({"controller", "node"}, roles, told)
        self.assertFalse({"mock-cloud", "demo"} & roles, told)

    def test_the_controller_serves_as_nobody_in_particular_and_stops_when_told(self):
        self.serve("controller", NONROOT)

    def test_the_node_serves_as_root_and_stops_when_told(self):
        self.serve("node", "0:0")

    def serve(self, role: str, user: str) -> None:
        folder = self.box.root / "tmp" / role
        folder.mkdir()
        folder.chmod(0o777)
        command = self.box.command("diskplugin", role, f"--endpoint=unix:///tmp/{role}/csi.sock", *ROLES[role], user=user)
        log = self.box.folder / f"{role}.log"
        with open(log, "w") as out:
            process = subprocess.Popen(command, env={**PATH, **KEYS}, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            deadline = time.monotonic() + PATIENCE
            while not accepts(folder / "csi.sock"):
                self.assertIsNone(process.poll(), log.read_text())
                self.assertLess(time.monotonic(), deadline, log.read_text())
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(PATIENCE), 0, log.read_text())
        finally:
            process.kill()
            process.wait()


def accepts(path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True
