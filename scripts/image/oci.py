"""An OCI image layout in one tar, with the files for `docker load`."""

import io
import json
import tarfile
from dataclasses import dataclass
from datetime import datetime, timezone

from layer import Layer, digest

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
INDEX = "application/vnd.oci.image.index.v1+json"


@dataclass
class About:
    """The metadata of the image."""

    name: str  # Without the tag: `diskplugin.csi.example/diskplugin`.
    version: str
    arch: str
    description: str
    revision: str | None
    epoch: int  # Seconds, of the last commit.


def timestamp(epoch: int) -> str:
    """As RFC 3339 has it."""
    return datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def labels(about: About) -> dict[str, str]:
    """The image's labels. None of them contains a time."""
    said = {
        "title": "diskplugin",
        "description": about.description,
        "version": about.version,
        "licenses": "Apache-2.0",
    }
    if about.revision:
        said["revision"] = about.revision
    return {f"org.opencontainers.image.{key}": value for key, value in said.items()}


def archive(about: About, layers: list[tuple[str, Layer]]) -> tuple[bytes, str]:
    """The tar of the layers, each with its comment, and the digest of the image's manifest."""
    created = timestamp(about.epoch)
    config = encode({
        "created": created,
        "architecture": about.arch,
        "os": "linux",
        # No user: the node plugin mounts, as root. Who runs the controller says 65532 (nonroot).
        "config": {
            "Entrypoint": ["/diskplugin"],
            "Env": ["PATH=/usr/sbin:/usr/bin"],
            "WorkingDir": "/",
            "Labels": labels(about),
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for _, layer in layers]},
        "history": [{"created": created, "created_by": purpose} for purpose, _ in layers],
    })  # fmt: skip
    blobs = [layer.blob for _, layer in layers]
    manifest = encode({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(CONFIG, config),
        "layers": [descriptor(LAYER, blob) for blob in blobs],
    })  # fmt: skip
    reference = f"{about.name}:{about.version}"
    index = encode({
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [{
            **descriptor(MANIFEST, manifest),
            "platform": {"architecture": about.arch, "os": "linux"},
            "annotations": {
                "io.containerd.image.name": reference,
                "org.opencontainers.image.ref.name": about.version,
            },
        }],
    })  # fmt: skip
    docker = encode([{
        "Config": path(config),
        "RepoTags": [reference],
        "Layers": [path(blob) for blob in blobs],
    }])  # fmt: skip
    files = {path(blob): blob for blob in [config, manifest, *blobs]}
    files |= {"oci-layout": encode({"imageLayoutVersion": "1.0.0"}), "index.json": index, "manifest.json": docker}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for folder in ("blobs", "blobs/sha256"):
            member = tarfile.TarInfo(folder)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(member)
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(files[name]), 0o644
            tar.addfile(member, io.BytesIO(files[name]))
    return out.getvalue(), digest(manifest)


def descriptor(kind: str, blob: bytes) -> dict:
    """How one blob names another."""
    return {"mediaType": kind, "digest": digest(blob), "size": len(blob)}


def path(blob: bytes) -> str:
    """Where the layout has it."""
    return "blobs/" + digest(blob).replace(":", "/")


def encode(value: object) -> bytes:
    """JSON, always the same for the same."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
