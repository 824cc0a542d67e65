"""The output of `diskplugin demo` as a terminal shows it."""

import os
import re
import subprocess

import svg

# Of a character of 13 px in DejaVu Sans Mono.
COLUMN, LINE, MARGIN = 7.83, 18, 16


def picture():
    # Without the option, the filesystem depends on the machine.
    command = [os.environ["DISKPLUGIN"], "demo", "--fs-type=xfs"]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = ["$ make demo ARGS=--fs-type=xfs", *out.rstrip("\n").split("\n")]
    width = max(map(len, lines)) * COLUMN + 2 * MARGIN
    parts = []
    for number, line in enumerate(lines):
        y = MARGIN + (number + 0.75) * LINE
        is_step = re.match(r" *\d+  \S", line)
        soft = "" if number == 0 or is_step or not line.startswith("    ") else " soft"
        if line:
            # The width of other fonts must not change the columns.
            parts.append(svg.text(MARGIN, y, line, cls="mono" + soft, length=f"{len(line) * COLUMN:.0f}",
                                  lengthAdjust="spacingAndGlyphs"))
    return svg.document(width, len(lines) * LINE + 2 * MARGIN, "Output of make demo", parts)
