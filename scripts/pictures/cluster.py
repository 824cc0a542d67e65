"""A small cluster on this machine: the fake cloud, an API server, two controllers, three nodes and Prometheus.

Nothing is simulated in the driver: each node formats and mounts the loop devices that the fake cloud attaches to it.
"""

import collections
import concurrent.futures
import importlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import grpc
from grpc_tools import protoc

SECONDS = 360
SCRAPE = 10
KUBE = "tests/cluster/bin/kube"
TOKEN = "pictures"
DRIVER = "diskplugin.csi.example"
VOLUMES, ATTACHMENTS = "/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1/volumeattachments"
# The node with a filesystem that fails.
FAULTY = "worker-3"
TEMPORARY = [getattr(grpc.StatusCode, name) for name in ("ABORTED", "UNAVAILABLE", "DEADLINE_EXCEEDED")]
GIB = 1 << 30
ZONE = "cn-beijing-a"


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def until(what, condition):
    end = time.monotonic() + 240
    while time.monotonic() < end:
        try:
            if found := condition():
                return found
        except OSError:
            pass
        time.sleep(0.2)
    raise TimeoutError(what)


def get(url):
    with urllib.request.urlopen(url, timeout=30) as response:
        return response.read().decode()


class Service:
    """The calls of CSI services over a socket."""

    def __init__(self, csi, stubs, path):
        self.csi = csi
        channel = grpc.insecure_channel(f"unix://{path}")
        self.stubs = [stub(channel) for stub in stubs]

    def call(self, method, **fields):
        request = getattr(self.csi, f"{method}Request")(**fields)
        stub = next(stub for stub in self.stubs if hasattr(stub, method))
        return getattr(stub, method)(request, timeout=60)

    def retry(self, method, **fields):
        """Calls again as sidecars and kubelet do."""
        end = time.monotonic() + 240
        while True:
            try:
                return self.call(method, **fields)
            except grpc.RpcError as error:
                if error.code() not in TEMPORARY or time.monotonic() > end:
                    raise
            time.sleep(1)


class Cluster:
    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="diskplugin-pictures-"))
        self.processes = []
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
        mounts = [line.split()[1] for line in open("/proc/mounts")]
        for mount in reversed([mount for mount in mounts if mount.startswith(f"{self.folder}/")]):
            subprocess.run(["umount", mount], check=False)
        backing = subprocess.run(["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"], text=True,
                                 stdout=subprocess.PIPE, check=True).stdout
        for device in [line.split()[0] for line in backing.splitlines() if f"{self.folder}/" in line]:
            subprocess.run(["losetup", "--detach", device], check=False)
        shutil.rmtree(self.folder)

    def run(self, name, *command, **environment):
        log = open(self.folder / f"{name}.log", "w")
        process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log,
                                   env={**os.environ, **environment})
        self.processes.append(process)

    def start(self):
        self.csi, controller, node = self.stubs()
        driver, folder = os.environ["DISKPLUGIN"], self.folder
        kubeconfig = self.start_api()
        instances = {f"worker-{number}": f"i-2zeworker{number}" for number in (1, 2, 3)}
        cloud = f"127.0.0.1:{port()}"
        self.cloud = f"http://{cloud}"
        self.run("cloud", driver, "mock-cloud", f"--listen={cloud}", "--ram-role=diskplugin", "--back-with=loop",
                 f"--device-dir={folder}/devices", f"--nodes={','.join(f'{it}={ZONE}' for it in instances.values())}",
                 "--create-delay=500ms", "--attach-delay=1s..3s", "--detach-delay=1s..2s",
                 "--latency=lognormal:60ms,0.5", f"--out-of-stock={ZONE}/cloud_ssd", "--disk-quantity=17")
        until("the cloud", lambda: get(f"{self.cloud}/_control/state"))
        targets = []
        for number in (0, 1):
            http, name = port(), f"controller-{number}"
            self.run(name, driver, "controller", "--cluster-id=pictures", "--region=cn-beijing", f"--zone={ZONE}",
                     f"--ecs-endpoint={self.cloud}", f"--metadata-endpoint={self.cloud}/imds/{instances['worker-1']}",
                     f"--endpoint=unix://{folder}/{name}.sock", f"--http-address=127.0.0.1:{http}", "--status-page",
                     "--rate-limits=account=50", "--metrics-inventory-interval=10s", "--metrics-orphans-interval=20s",
                     "--leader-election", f"--leader-election-identity={name}", "--leader-election-namespace=default",
                     # A busy machine may delay the API server.
                     "--leader-election-lease-duration=120s", "--leader-election-renew-deadline=100s",
                     f"--kubeconfig={kubeconfig}")
            targets.append(("controller", http, name, f"worker-{number + 1}"))
            if number == 0:
                until("the leader", (folder / f"{name}.sock").exists)
                self.status_page = f"http://127.0.0.1:{http}/status?paused"
        self.controller = Service(self.csi, controller, folder / "controller-0.sock")
        self.nodes = []
        for name, instance in instances.items():
            http = port()
            self.run(name, driver, "node", f"--metadata-endpoint={self.cloud}/imds/{instance}",
                     f"--endpoint=unix://{folder}/{name}.sock", f"--http-address=127.0.0.1:{http}",
                     f"--kubelet-dir={folder}/{name}", f"--state-dir={folder}/{name}-state",
                     f"--device-dir={folder}/devices/nodes/{instance}", "--max-volumes-per-node=12")
            (folder / name).mkdir()
            until(name, (folder / f"{name}.sock").exists)
            self.nodes.append((name, instance, Service(self.csi, node, folder / f"{name}.sock")))
            targets.append(("node", http, f"node-{name}", name))
        self.start_prometheus(targets)

    def stubs(self):
        generated = self.folder / "stubs"
        generated.mkdir()
        include = pathlib.Path(importlib.import_module("grpc_tools").__file__).parent / "_proto"
        failed = protoc.main(["", "--proto_path=proto", f"--proto_path={include}", f"--python_out={generated}",
                              f"--grpc_python_out={generated}", "proto/csi.proto"])
        assert not failed
        sys.path.insert(0, str(generated))
        csi, rpc = importlib.import_module("csi_pb2"), importlib.import_module("csi_pb2_grpc")
        return csi, [rpc.ControllerStub], [rpc.NodeStub]

    def start_api(self):
        """An API server for leader election and PersistentVolumes. Returns the kubeconfig."""
        folder = self.folder / "api"
        folder.mkdir()
        etcd, peer, server = (f"127.0.0.1:{port()}" for _ in range(3))
        self.run("etcd", KUBE, "etcd", f"--data-dir={folder}/etcd", f"--listen-client-urls=http://{etcd}",
                 f"--advertise-client-urls=http://{etcd}", f"--listen-peer-urls=http://{peer}",
                 f"--initial-advertise-peer-urls=http://{peer}", f"--initial-cluster=default=http://{peer}",
                 "--unsafe-no-fsync", "--log-level=warn")
        subprocess.run(["openssl", "genrsa", "-out", folder / "accounts.key", "2048"], check=True,
                       stderr=subprocess.DEVNULL)
        (folder / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        self.run("apiserver", KUBE, "kube-apiserver", "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
                 f"--secure-port={server.split(':')[1]}", f"--etcd-servers=http://{etcd}", f"--cert-dir={folder}",
                 f"--token-auth-file={folder}/tokens.csv", f"--service-account-issuer=https://{server}",
                 f"--service-account-signing-key-file={folder}/accounts.key",
                 f"--service-account-key-file={folder}/accounts.key", "--service-cluster-ip-range=10.96.0.0/16",
                 "--endpoint-reconciler-type=none", "--disable-admission-plugins=StorageObjectInUseProtection")
        self.api = f"https://{server}"
        until("the API server", lambda: self.kubernetes("/readyz"))
        cluster = {"server": self.api, "certificate-authority": str(folder / "apiserver.crt")}
        (folder / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": {"token": TOKEN}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }))
        return folder / "kubeconfig"

    def kubernetes(self, path, body=None, method=None):
        request = urllib.request.Request(self.api + path, json.dumps(body).encode() if body else None, method=method)
        request.add_header("Authorization", f"Bearer {TOKEN}")
        request.add_header("Content-Type", "application/json")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with urllib.request.urlopen(request, timeout=30, context=context) as response:
            return response.read().decode()

    def start_prometheus(self, targets):
        jobs = "".join(
            f"  - job_name: {pod}\n    static_configs:\n      - targets: ['127.0.0.1:{http}']\n        labels: "
            f"{{job: diskplugin-{role}, namespace: diskplugin, release: diskplugin, pod: {pod}, node: {node}}}\n"
            for role, http, pod, node in targets)
        file = self.folder / "prometheus.yaml"
        file.write_text(f"global: {{scrape_interval: {SCRAPE}s}}\nscrape_configs:\n{jobs}")
        address = f"127.0.0.1:{port()}"
        self.prometheus = f"http://{address}"
        self.run("prometheus", "prometheus", f"--config.file={file}", f"--storage.tsdb.path={self.folder}/data",
                 f"--web.listen-address={address}")
        until("Prometheus", lambda: get(f"{self.prometheus}/-/ready"))

    # The load.

    def capability(self):
        return self.csi.VolumeCapability(mount={"fs_type": "ext4"}, access_mode={"mode": 1})

    def new_disk(self, name, gib=20, kind="cloud_essd"):
        return {"name": name, "volume_capabilities": [self.capability()], "parameters": {"type": kind},
                "capacity_range": {"required_bytes": gib * GIB}}

    def volume(self, node, name, attachment=True, **disk):
        """Creates, attaches, formats and mounts a volume, as kubelet and the sidecars do."""
        host, instance, service = node
        created = self.controller.retry("CreateVolume", **self.new_disk(name, **disk))
        volume, capability = created.volume.volume_id, self.capability()
        self.persistent_volume(name, volume)
        if attachment:
            self.kubernetes(ATTACHMENTS, {
                "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name},
                "spec": {"attacher": DRIVER, "nodeName": host, "source": {"persistentVolumeName": name}}})
        published = self.controller.retry("ControllerPublishVolume", volume_id=volume, node_id=instance,
                                          volume_capability=capability)
        staging = self.folder / host / volume
        staging.mkdir()
        service.retry("NodeStageVolume", volume_id=volume, staging_target_path=str(staging),
                      volume_capability=capability, publish_context=published.publish_context)
        return volume, staging

    def persistent_volume(self, name, volume):
        self.kubernetes(VOLUMES, {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"],
                     "csi": {"driver": DRIVER, "volumeHandle": volume}}})

    def delete(self, node, name, volume, staging):
        _, instance, service = node
        service.retry("NodeUnstageVolume", volume_id=volume, staging_target_path=str(staging))
        self.controller.retry("ControllerUnpublishVolume", volume_id=volume, node_id=instance)
        self.controller.retry("DeleteVolume", volume_id=volume)
        for path in (ATTACHMENTS, VOLUMES):
            self.kubernetes(f"{path}/{name}", method="DELETE")

    def keep(self, node, number):
        """A volume that stays, is read and written, and fills slowly."""
        host, _, service = node
        # The disk of a VolumeAttachment that was deleted by mistake.
        attachment = (host, number) != ("worker-2", 1)
        kind = "cloud_auto" if number else "cloud_essd"
        volume, staging = self.volume(node, f"pvc-{host}-{number}", attachment, gib=2 + number, kind=kind)
        self.kept[host].append(volume)
        fill, block = 0, f"bs={16 << number}k"
        while not self.over.wait(random.uniform(2, 6)):
            if (host, number) == (FAULTY, 2) and time.time() > self.began + SECONDS * 0.6:
                # The kernel reports an error of the filesystem, and makes it read-only.
                device = subprocess.check_output(["findmnt", "-no", "SOURCE", staging], text=True).strip()
                pathlib.Path(f"/sys/fs/ext4/{device.split('/')[-1]}/trigger_fs_error").write_text("pictures")
                return
            fill += random.randrange(4, 20 - 6 * number)
            size = random.choice([1, 2, 4, 8])
            subprocess.run(["dd", "if=/dev/urandom", f"of={staging}/data", block, f"count={size * 8}", "conv=fsync",
                            "status=none"], check=True)
            subprocess.run(["dd", f"if={staging}/data", "of=/dev/null", block, "iflag=direct", "status=none"],
                           check=True)
            subprocess.run(["fallocate", "--length", f"{fill}M", staging / "log"], check=True)
            service.retry("NodeGetVolumeStats", volume_id=volume, volume_path=str(staging),
                          staging_target_path=str(staging))

    def churn(self, node):
        """Volumes that come and go."""
        host, _, service = node
        number = 0
        while not self.over.wait(random.uniform(0, 12)):
            number += 1
            name = f"pvc-{host}-job-{number}"
            volume, staging = self.volume(node, name)
            service.retry("NodeGetInfo")
            self.over.wait(random.uniform(2, 15))
            self.delete(node, name, volume, staging)

    def fail(self):
        """A category that is out of stock, and a disk that does not exist."""
        number = 0
        while not self.over.wait(random.uniform(8, 20)):
            number += 1
            calls = [
                (self.nodes[number % 3][2], "NodeGetVolumeStats", {
                    "volume_id": "d-2zemissing", "volume_path": "/none"}),
                (self.controller, "ControllerPublishVolume", {
                    "volume_id": "d-2zemissing", "node_id": self.nodes[0][1],
                    "volume_capability": self.capability()}),
            ]
            # Each is a row of its own on the status page.
            if number % 8 == 1:
                calls.append((self.controller, "CreateVolume", self.new_disk("pvc-ssd", kind="cloud_ssd")))
            for service, method, fields in calls:
                try:
                    service.call(method, **fields)
                    raise AssertionError(f"{method} must fail")
                except grpc.RpcError as error:
                    assert error.code() is not grpc.StatusCode.INVALID_ARGUMENT, error

    def configure(self, change):
        request = urllib.request.Request(f"{self.cloud}/_control/config", json.dumps(change).encode(), method="PATCH")
        urllib.request.urlopen(request, timeout=30).close()

    def burst(self, pool, count):
        """Volumes that are created at the same time."""
        def one(number):
            node = self.nodes[number % len(self.nodes)]
            name = f"pvc-burst-{count}-{number}"
            self.delete(node, name, *self.volume(node, name))
        return [pool.submit(one, number) for number in range(count)]

    def work(self, midway):
        """Runs the load; calls `midway` while it is heavy. Returns its period."""
        self.over, self.kept = threading.Event(), collections.defaultdict(list)
        self.began = time.time()
        end = self.began + SECONDS
        self.persistent_volume("pvc-lost", "d-2zelost")
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            try:
                jobs = [pool.submit(self.fail)]
                for node in self.nodes:
                    jobs += [pool.submit(self.churn, node), *(pool.submit(self.keep, node, n) for n in range(3))]
                time.sleep(SECONDS * 0.3)
                # As if other programs used most of the account's quota.
                self.configure({"throttle": {"actions": {"CreateDisk": "1/2s"}}})
                jobs += self.burst(pool, 12)
                time.sleep(SECONDS * 0.25)
                jobs += self.burst(pool, 8)
                time.sleep(4)
                midway()
                time.sleep(max(0, end - time.time()))
                end = time.time()
            finally:
                self.over.set()
        for job in jobs:
            job.result()
        return self.began, end
