"""The panels of a Grafana dashboard, with the data that Prometheus returns for their queries."""

import json
import math
import re
import time
import urllib.parse
import urllib.request

import svg
from cluster import SCRAPE

# Grafana's grid has 24 columns.
WIDTH, COLUMN, ROW, GAP = 912, 38, 27, 6
STEP = 10
LEGEND_LINES = 6

BINARY = ["B", "KiB", "MiB", "GiB", "TiB"]


def number(value):
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def scaled(value, base, units):
    power = 0
    while abs(value) >= base and power < len(units) - 1:
        value, power = value / base, power + 1
    return f"{number(value)} {units[power]}"


def shown(value, unit):
    """A value as Grafana shows it in this unit."""
    if unit == "s":
        if 0 < abs(value) < 1:
            return scaled(value * 1e6, 1000, ["µs", "ms"])
        return f"{number(value)} s" if abs(value) < 120 else f"{number(value / 60)} min"
    if unit in ("bytes", "Bps"):
        return scaled(value, 1024, BINARY) + ("/s" if unit == "Bps" else "")
    if unit == "percentunit":
        return f"{number(value * 100)} %"
    return number(value) + {"reqps": " req/s", "iops": " io/s"}.get(unit, "")


class Prometheus:
    def __init__(self, url, start, end, variables):
        self.url, self.start, self.end, self.variables = url, start, end, variables

    def results(self, panel):
        """The legend and the samples of each series."""
        found = []
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", f"{4 * SCRAPE}s")
            for name, values in self.variables.items():
                query = query.replace(f'"${name}"', json.dumps("|".join(values) or ".+"))
            assert "$" not in query, query
            if target.get("instant"):
                answer = self.get("query", query=query, time=self.end)
                series = [(row["metric"], [row["value"]]) for row in answer]
            else:
                answer = self.get("query_range", query=query, start=self.start, end=self.end, step=STEP)
                series = [(row["metric"], row["values"]) for row in answer]
            legend = target.get("legendFormat", "")
            for labels, samples in series:
                name = re.sub(r"{{\s*(\w+)\s*}}", lambda match: labels.get(match[1], ""), legend)
                samples = [(at, float(value)) for at, value in samples]
                samples = [(at, value) for at, value in samples if math.isfinite(value)]
                if samples:
                    found.append((name.strip(), labels, samples))
        return found

    def get(self, path, **parameters):
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=60) as response:
            return json.load(response)["data"]["result"]


def colour(value, field):
    chosen = "neutral"
    for step in field.get("thresholds", {}).get("steps", []):
        if step["value"] is None or value >= step["value"]:
            chosen = {"red": "bad", "green": "good"}[step["color"]]
    return f"var(--{chosen})"


def width(words):
    """About the width of a text of 11 px."""
    return len(words) * 6.5


def fitted(x, y, words, room, **attributes):
    """A text that is condensed if it is wider than its room."""
    wide = {"length": f"{room:.0f}", "lengthAdjust": "spacingAndGlyphs"} if width(words) > room else {}
    return svg.text(x, y, words, **wide, **attributes)


def empty(x, y, w, h):
    return [svg.text(x + w / 2, y + h / 2 + 8, "No data", cls="soft", anchor="middle")]


def stat(x, y, w, h, field, results):
    name, labels, samples = results[0]
    value = shown(samples[-1][1], field["unit"])
    if field.get("displayName", "").startswith("${__field.labels."):
        value = labels[field["displayName"][len("${__field.labels."):-1]]
    parts = []
    if name and name not in value and "displayName" not in field:
        parts.append(svg.text(x + w / 2, y + h - 10, name, cls="soft", anchor="middle"))
    style = f"font-size: 26px; fill: {colour(samples[-1][1], field)}"
    return [svg.text(x + w / 2, y + h / 2 + 16, value, anchor="middle", style=style), *parts]


def bars(x, y, w, h, field, results):
    results = sorted(results, key=lambda row: -row[2][-1][1])
    line = min(26, (h - 34) / len(results))
    small = f"font-size: {min(11, line - 2):.0f}px"
    most = field.get("max") or max(samples[-1][1] for _, _, samples in results) or 1
    names = max(width(name) for name, _, _ in results) + 8
    room = w - names - 80
    parts = []
    for at, (name, _, samples) in enumerate(results):
        value, top = samples[-1][1], y + 30 + at * line
        fill = colour(value, field)
        parts += [svg.text(x + 10, top + line / 2 + 4, name, style=small),
                  svg.box(x + 10 + names, top + 3, room, line - 6, "fill: var(--line); opacity: 0.4"),
                  svg.box(x + 10 + names, top + 3, max(1, room * value / most), line - 6, f"fill: {fill}"),
                  svg.text(x + 18 + names + room, top + line / 2 + 4, shown(value, field["unit"]), style=small)]
    return parts


def table(x, y, w, h, field, results):
    names = [*sorted(name for name in results[0][1] if name != "__name__"), "Value"]
    rows = [[*(labels[name] for name in names[:-1]), shown(samples[-1][1], field["unit"])]
            for _, labels, samples in results]
    needs = [max(len(row[at]) for row in [names, *rows]) + 2 for at in range(len(names))]
    parts, left = [], x + 10
    for at, name in enumerate(names):
        room = needs[at] * (w - 20) / sum(needs)
        parts.append(fitted(left, y + 42, name, room - 10, cls="soft"))
        parts += [fitted(left, y + 62 + line * 18, row[at], room - 10) for line, row in enumerate(rows)]
        left += room
    return parts


def legend(x, bottom, w, names):
    """Lines of names from the bottom up, and their height."""
    rows, left = [[]], 0
    for at, name in enumerate(names):
        if left and left + 16 + width(name) > w:
            rows.append([])
            left = 0
        rows[-1].append((left, at, name))
        left += 24 + width(name)
    hidden = sum(map(len, rows[LEGEND_LINES:]))
    rows = rows[:LEGEND_LINES]
    if hidden:
        hidden += len(rows[-1])
        rows[-1] = []
    parts = []
    for line, row in enumerate(rows):
        y = bottom - (len(rows) - 1 - line) * 15
        for left, at, name in row:
            fill = svg.COLOURS[at % len(svg.COLOURS)]
            parts += [svg.box(x + left, y - 5, 10, 3, f"fill: {fill}"), fitted(x + left + 14, y, name, w - 14)]
    if hidden:
        parts.append(svg.text(x, bottom, f"and {hidden} more", cls="soft"))
    return parts, len(rows) * 15


def ticks(low, high, unit):
    """Round values between both."""
    base = 1024 if unit in ("bytes", "Bps") and high >= 1024 else 10
    rough = (high - low) / 4
    power = base ** math.floor(math.log(rough, base))
    choices = (1, 2, 2.5, 5, 10) if base == 10 else (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    step = next(power * choice for choice in choices if power * choice >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [at * step for at in range(first, math.floor(high / step + 1e-9) + 1)]


def curves(x, y, w, h, field, results, start, end):
    results = sorted(results, key=lambda row: row[0])
    lines, lower = legend(x + 10, y + h - 8, w - 20, [name for name, _, _ in results])
    values = [value for _, _, samples in results for _, value in samples]
    low, high = min(field.get("min", 0), *values), max(*values, field.get("max", 0))
    high = field.get("max") or (high + (high - low) * 0.08 if high > low else low + 1)
    marks = ticks(low, high, field["unit"])
    labels = [shown(mark, field["unit"]) for mark in marks]
    left = x + 14 + max(map(width, labels))
    right, top, bottom = x + w - 12, y + 32, y + h - lower - 26

    def across(at):
        return left + (at - start) / (end - start) * (right - left)

    def up(value):
        return bottom - (value - low) / (high - low) * (bottom - top)

    parts = []
    for mark, label in zip(marks, labels):
        parts += [f'<path d="M{left:.0f} {up(mark):.1f}H{right:.0f}" style="stroke: var(--line)"/>',
                  svg.text(left - 5, up(mark) + 4, label, cls="soft", anchor="end")]
    minute = 60 if w > 400 else 120
    for at in range(math.ceil(start / minute) * minute, int(end), minute):
        if left + 14 < across(at) < right - 14:
            clock = time.strftime("%H:%M", time.gmtime(at))
            parts.append(svg.text(across(at), bottom + 14, clock, cls="soft", anchor="middle"))
    for at, (_, _, samples) in enumerate(results):
        path, before = "", None
        for when, value in samples:
            joined = before is not None and when - before < 1.5 * STEP
            path += f"{'L' if joined else 'M'}{across(when):.0f} {up(value):.1f}"
            # A sample between gaps is a point.
            path += "" if joined else "h1"
            before = when
        style = f"fill: none; stroke: {svg.COLOURS[at % len(svg.COLOURS)]}; stroke-width: 1.5"
        parts.append(f'<path d="{path}" style="{style}"/>')
    return [*parts, *lines]


def picture(file, url, start, end, chosen):
    board = json.loads(file.read_text())
    variables = [variable for variable in board["templating"]["list"] if variable["type"] == "query"]
    values = {variable["name"]: chosen.get(variable["name"], []) for variable in variables}
    prometheus = Prometheus(url, start, end, values)
    shown_values = [f'{it["label"]}: {" + ".join(values[it["name"]]) or "All"}' for it in variables]
    parts = [svg.text(10, 24, board["title"], style="font-size: 16px; font-weight: bold"),
             svg.text(10, 46, "    ".join(shown_values), cls="soft", style="white-space: pre")]
    top, lowest = 58, 0
    for panel in board["panels"]:
        place = panel["gridPos"]
        x, y = place["x"] * COLUMN + GAP / 2, top + place["y"] * ROW
        w, h = place["w"] * COLUMN - GAP, place["h"] * ROW - GAP
        lowest = max(lowest, y + h)
        if panel["type"] == "row":
            parts.append(svg.text(x + 7, y + 16, panel["title"], style="font-size: 13px; font-weight: bold"))
            continue
        parts += [svg.box(x, y, w, h, "fill: var(--panel); stroke: var(--line)"),
                  svg.text(x + 10, y + 18, panel["title"], style="font-weight: bold")]
        field, results = panel["fieldConfig"]["defaults"], prometheus.results(panel)
        if not results:
            parts += empty(x, y, w, h)
        elif panel["type"] == "timeseries":
            parts += curves(x, y, w, h, field, results, start, end)
        else:
            draw = {"stat": stat, "bargauge": bars, "table": table}[panel["type"]]
            parts += draw(x, y, w, h, field, results)
    return svg.document(WIDTH, lowest + 8, f"Grafana dashboard {board['title']}", parts)
