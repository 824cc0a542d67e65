"""The programs of the image start in it, in the roles of the chart."""

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
# The program that the chart starts for each role.
PROGRAMS = {"controller": "diskplugin-controller", "node": "diskplugin-node"}
# No account has these.
KEYS = {"ALIBABA_CLOUD_ACCESS_KEY_ID": "of-no-account", "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "of-no-account"}


class Driver(unittest.TestCase):
    def test_it_needs_no_library(self):
        for program in ("diskplugin", *PROGRAMS.values()):
            elf = readelf(Image().data[program])
            self.assertEqual((elf["needed"], elf["interpreter"]), ([], []), program)

    def test_it_names_no_folder_of_the_builder(self):
        for program in ("diskplugin", *PROGRAMS.values()):
            data = Image().data[program]
            for folder in (str(PROJECT), os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo")):
                self.assertFalse(folder.encode() + b"/" in data, (program, folder))


class Started(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.box = Box()
        cls.addClassCleanup(cls.box.close)

    def test_it_prints_its_version_as_both_users(self):
        for user in ("0:0", NONROOT):
            for program in ("diskplugin", *PROGRAMS.values()):
                done = self.box.run(program, "--version", user=user)
                self.assertEqual((done.returncode, done.stdout.strip()), (0, f"{program} {VERSION}"))

    def test_it_has_the_roles_of_a_cluster_and_no_fake_cloud(self):
        output = self.box.run("diskplugin", "--help").stdout
        roles = set(re.findall(r"(?m)^  ([a-z-]+) ", output))
        self.assertLessEqual({"controller", "node"}, roles, output)
        self.assertFalse({"mock-cloud", "demo"} & roles, output)

    def test_the_nodes_program_has_the_roles_of_a_node_and_no_client_of_the_api_server(self):
        output = self.box.run("diskplugin-node", "--help").stdout
        roles = set(re.findall(r"(?m)^  ([a-z-]+) ", output))
        self.assertEqual({"node", "doctor", "help"}, roles, output)
        # Panics name the file of their crate: the client of the API server is in the one and not in the other.
        data, client = Image().data, b"/kube-client-"
        self.assertTrue(client in data["diskplugin"])
        self.assertFalse(client in data["diskplugin-node"])

    def test_the_controllers_program_has_the_role_of_the_controller(self):
        text = self.box.run("diskplugin-controller", "--help").stdout
        roles = set(re.findall(r"(?m)^  ([a-z-]+) ", text))
        self.assertEqual({"controller", "help"}, roles, text)
        # Only the bundle of the commands for operators is compressed.
        data, archive = Image().data, b"/flate2-"
        self.assertTrue(archive in data["diskplugin"])
        self.assertFalse(archive in data["diskplugin-controller"])

    def test_the_controller_serves_as_an_unprivileged_user_and_stops_on_sigterm(self):
        self.serve("controller", NONROOT)

    def test_the_node_serves_as_root_and_stops_on_sigterm(self):
        self.serve("node", "0:0")

    def serve(self, role: str, user: str) -> None:
        folder = self.box.root / "tmp" / role
        folder.mkdir()
        folder.chmod(0o777)
        command = self.box.command(PROGRAMS[role], role, f"--endpoint=unix:///tmp/{role}/csi.sock", *ROLES[role], user=user)
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
