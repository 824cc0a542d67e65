"""Packs programs into one archive of container images, as `docker save` writes them:

    images.py OUT BUSYBOX NAME=PROGRAM... NAME+PROGRAM... NAME^PROGRAM,PROGRAM... NAME...

A program after `=` is the only file of its image. After `+` it is added to busybox's commands; after `^` the programs replace
busybox's of the same names, with the libraries that they need. The image for pods that run shell commands, of which a NAME alone is one
more name, and that of the pause container are busybox's. An archive that is not older than the programs stays.
"""

import hashlib
import io
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
from pathlib import Path

SHELL = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1"
PAUSE = "localhost/pause:1"
# Longer than any cluster lasts.
FOREVER = ["/bin/busybox", "sleep", "2147483647"]


def layer(files: dict[str, bytes], links: dict[str, str], folders: dict[str, int]) -> bytes:
    """A tree of root's, in a tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, mode in folders.items():
            member = tarfile.TarInfo(path)
            member.type, member.mode = tarfile.DIRTYPE, mode
            tar.addfile(member)
        for path, data in files.items():
            member = tarfile.TarInfo(path)
            member.mode, member.size = 0o755, len(data)
            tar.addfile(member, io.BytesIO(data))
        for path, to in links.items():
            member = tarfile.TarInfo(path)
            member.type, member.linkname = tarfile.SYMTYPE, to
            tar.addfile(member)
    return out.getvalue()


def applets(busybox: Path) -> list[str]:
    """The commands that this busybox is."""
    done = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True)
    return [name for name in done.stdout.split() if name != "busybox"]


def libraries(program: Path) -> dict[str, bytes]:
    """The libraries that the machine's linker would load for it."""
    done = subprocess.run(["ldd", program], check=True, capture_output=True, text=True)
    paths = re.findall(r"(/\S+) \(0x", done.stdout)
    return {path.lstrip("/"): Path(path).read_bytes() for path in paths}


def write(out: Path, images: list[tuple[str, list[str], bytes]]) -> None:
    """Writes the images, each a name, its command and its layer."""
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    blobs: dict[str, bytes] = {}
    manifest = []
    for name, command, tree in images:
        digest = hashlib.sha256(tree).hexdigest()
        config = json.dumps({
            "architecture": arch,
            "os": "linux",
            "config": {"Entrypoint": command, "Env": ["PATH=/bin"], "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }).encode()  # fmt: skip
        of_config = hashlib.sha256(config).hexdigest() + ".json"
        blobs |= {of_config: config, f"{digest}.tar": tree}
        manifest.append({"Config": of_config, "RepoTags": [name], "Layers": [f"{digest}.tar"]})
    blobs["manifest.json"] = json.dumps(manifest).encode()
    new = out.with_name(f"{out.name}.{os.getpid()}")
    with tarfile.open(new, "w", format=tarfile.USTAR_FORMAT) as tar:
        for path, data in blobs.items():
            member = tarfile.TarInfo(path)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    new.rename(out)


def shell(busybox: Path) -> tuple[dict[str, bytes], dict[str, str], dict[str, int]]:
    """Files, links and folders of an image in which commands can be typed."""
    users = {"etc/passwd": b"root:x:0:0:root:/:/bin/sh\n", "etc/group": b"root:x:0:\n"}
    links = {f"bin/{name}": "busybox" for name in applets(busybox)}
    folders = {name: 0o755 for name in ("bin", "dev", "etc", "proc", "root", "sys")} | {"tmp": 0o1777}
    return {"bin/busybox": busybox.read_bytes(), **users}, links, folders


def main() -> None:
    out, busybox = Path(sys.argv[1]), Path(sys.argv[2])
    # Each is a name, a separator and programs.
    parts = [re.fullmatch("([^=+^]+)([=+^]?)(.*)", word).groups() for word in sys.argv[3:]]
    wanted = [(name, how, [Path(file) for file in files.split(",") if file]) for name, how, files in parts]
    # The names count too: they carry the versions.
    stamp = out.with_suffix(".list")
    words = "\n".join(sys.argv[2:])
    sources = [busybox, Path(__file__), *(file for _, _, programs in wanted for file in programs)]
    newest = max(file.stat().st_mtime for file in sources)
    if out.exists() and stamp.exists() and stamp.read_text() == words and out.stat().st_mtime >= newest:
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    files, links, folders = shell(busybox)
    tree = layer(files, links, folders)
    images = [(SHELL, [], tree), (PAUSE, FOREVER, tree)]
    for name, how, programs in wanted:
        in_root = {file.name: file.read_bytes() for file in programs}
        entry = [f"/{file.name}" for file in programs]
        match how:
            case "":
                images.append((name, [], tree))
            case "=":
                images.append((name, entry, layer(in_root, {}, {"tmp": 0o1777})))
            case "+":
                images.append((name, entry, layer(files | in_root, links, folders)))
            case "^":
                own = {f"bin/{file}": content for file, content in in_root.items()}
                others = {link: to for link, to in links.items() if link not in own}
                for file in programs:
                    own |= libraries(file)
                images.append((name, [], layer(files | own, others, folders)))
    write(out, images)
    stamp.write_text(words)


if __name__ == "__main__":
    main()
