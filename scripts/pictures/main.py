"""Draws the pictures of the documentation; see `draw`."""

import pathlib
import subprocess
import sys

import cluster
import dashboard
import demo
import page

FOLDER = pathlib.Path("docs/pictures")
DASHBOARDS = pathlib.Path("deploy/helm/diskplugin/files/dashboards")


def draw_demo():
    (FOLDER / "demo.svg").write_text(demo.picture())


def draw_cluster():
    with cluster.Cluster() as running:
        start, end = running.work(lambda: page.shoot(running.status_page, FOLDER / "status-page.png"))
        for file in sorted(DASHBOARDS.glob("*.json")):
            # The dashboard of volumes has a curve for each volume: show those of one node.
            one = {"node": [cluster.FAULTY], "disk_id": running.kept[cluster.FAULTY]}
            chosen = one if file.stem == "volume" else {}
            drawn = dashboard.picture(file, running.prometheus, start, end, chosen)
            (FOLDER / f"dashboard-{file.stem}.svg").write_text(drawn)


if __name__ == "__main__":
    parts = {"demo": draw_demo, "cluster": draw_cluster}
    chosen = sys.argv[1:] or list(parts)
    unknown = [name for name in chosen if name not in parts]
    if unknown:
        sys.exit(f"pictures: unknown: {', '.join(unknown)}; allowed: {', '.join(parts)}")
    FOLDER.mkdir(exist_ok=True)
    for name in chosen:
        parts[name]()
    subprocess.run(["ls", "-l", FOLDER], check=True)
