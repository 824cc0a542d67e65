"""The fake cloud as a process, and its control path."""

import contextlib
import json
import os
import subprocess
import time
import urllib.request

PROGRAM = os.environ["DISKPLUGIN"]
REGION = "cn-beijing"
ZONE = "cn-beijing-a"
NODE = "i-one"
KEY = "LTAI5tFAKECLOUDKEY000001"
SECRET = "fake-cloud-secret"
# Seconds until something that was ordered must show.
PATIENCE = 20


class Refusal(Exception):
    """An error of either SDK, in one form."""

    def __init__(self, status, code, message, request_id, original):
        super().__init__(f"{status} {code}: {message} ({request_id})")
        self.status = status
        self.code = code
        self.message = message
        self.request_id = request_id
        self.original = original


class Cloud:
    def __init__(self, *flags):
        command = [PROGRAM, "mock-cloud", "--listen", "127.0.0.1:0", "--region", REGION]
        command += ["--nodes", f"{NODE}={ZONE},i-two={ZONE}", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        if " at http://" not in first:
            self.close()
            raise RuntimeError(f"the fake cloud did not come up: {first!r}")
        self.address = first.rsplit("http://", 1)[1].strip()
        self.port = int(self.address.rsplit(":", 1)[1])

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.process.stdout.close()

    def control(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        url = f"http://{self.address}/_control/{path}"
        request = urllib.request.Request(url, data=data, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return json.load(response)

    def configure(self, patch):
        self.control("PATCH", "config", patch)

    @contextlib.contextmanager
    def configured(self, patch, back):
        self.configure(patch)
        try:
            yield
        finally:
            self.configure(back)

    def calls(self, action):
        calls = self.control("GET", "calls")["calls"]
        return [call for call in calls if call["action"] == action]

    def disks(self, name):
        return [disk for disk in self.control("GET", "state")["disks"] if disk["name"] == name]


def wait_for(what, look):
    """Waits until `look` returns something that is true, and returns it."""
    end = time.monotonic() + PATIENCE
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not show in {PATIENCE} s")
        time.sleep(0.05)
