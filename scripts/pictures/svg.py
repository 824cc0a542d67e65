"""Parts of SVG files. Their colours follow the light or dark scheme of the reader."""

from xml.sax.saxutils import escape

STYLE = """
svg { --back: #ffffff; --panel: #ffffff; --line: #d1d9e0; --text: #1f2328; --soft: #59636e; --good: #1a7f37;
  --bad: #d1242f; --neutral: #0969da; }
@media (prefers-color-scheme: dark) { svg { --back: #0d1117; --panel: #161b22; --line: #3d444d; --text: #f0f6fc;
  --soft: #9198a1; --good: #3fb950; --bad: #f85149; --neutral: #4493f8; } }
text { font-family: "DejaVu Sans", Verdana, sans-serif; font-size: 11px; fill: var(--text); }
.mono { font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 13px; white-space: pre; }
.soft { fill: var(--soft); }
"""

# Readable on a light and on a dark background.
COLOURS = ["#3b82f6", "#e0702d", "#2da44e", "#bf4bcf", "#c99a00", "#14a3a8", "#e5484d", "#8b7355", "#7c6ff0", "#6b9a1f"]


def text(x, y, words, **attributes):
    names = {"cls": "class", "anchor": "text-anchor", "length": "textLength"}
    extra = "".join(f' {names.get(key, key)}="{value}"' for key, value in attributes.items())
    return f'<text x="{x:g}" y="{y:g}"{extra}>{escape(str(words))}</text>'


def box(x, y, width, height, style):
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" style="{style}"/>'


def document(width, height, title, parts):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        box(0, 0, width, height, "fill: var(--back)"),
        *parts,
        "</svg>\n",
    ])
