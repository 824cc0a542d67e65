"""The status page as a browser shows it."""

import io
import pathlib
import re
import subprocess
import tempfile
import urllib.request

from PIL import Image, ImageChops
from PIL.PngImagePlugin import PngInfo

WIDTH, HEIGHT, SCALE = 1200, 2400, 1.25
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run
    --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars"""


def shoot(url, path):
    with urllib.request.urlopen(url) as response:
        html = response.read().decode()
    with tempfile.TemporaryDirectory() as profile:
        # One state for the picture and its headings.
        folder = pathlib.Path(profile)
        (folder / "page.html").write_text(html)
        subprocess.run(["chromium", *FLAGS.split(), f"--user-data-dir={folder}/profile",
                        f"--window-size={WIDTH},{HEIGHT}", f"--force-device-scale-factor={SCALE}",
                        f"--screenshot={folder}/page.png", f"file://{folder}/page.html"],
                       check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        image = Image.open(io.BytesIO((folder / "page.png").read_bytes())).convert("RGB")
    # Without the empty part below the page.
    empty = Image.new("RGB", image.size, image.getpixel((0, image.height - 1)))
    content = ImageChops.difference(image, empty).getbbox()
    image = image.crop((0, 0, image.width, min(image.height, content[3] + 24)))
    headings = PngInfo()
    headings.add_text("Description", "; ".join(re.findall("<h2>(.*?)</h2>", html)))
    image.quantize(32).save(path, optimize=True, pnginfo=headings)
