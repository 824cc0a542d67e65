"""The licences of a Debian package, as SPDX writes them, where its copyright file can be read by a program."""

import re

# Debian's names that SPDX has under another name.
SPDX = {
    "apache-2": "Apache-2.0",
    "apache-2.0": "Apache-2.0",
    "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "bsd-4-clause": "BSD-4-Clause",
    "bsd-2clause": "BSD-2-Clause",
    "bsd-3clause": "BSD-3-Clause",
    "bsl-1": "BSL-1.0",
    "cc0-1.0": "CC0-1.0",
    "expat": "MIT",
    "isc": "ISC",
    "mit": "MIT",
    "mpl-2.0": "MPL-2.0",
    "zlib": "Zlib",
}
GNU = re.compile(r"(l?gpl)-([123](?:\.[01])?)(\+?)")


def licences(copyright_file: str) -> list[str]:
    """The licences of all files of the source, in order and each once; none where the file is only for people.
    What SPDX has no name for is a `LicenseRef-`."""
    if not copyright_file.lstrip().startswith("Format:"):
        return []
    found: dict[str, None] = {}
    for line in re.findall(r"^License:[ \t]*(\S.*)$", copyright_file, re.MULTILINE):
        for name in re.split(r",? +(?:and|or) +|, *| with .*", line.strip()):
            if name:
                found[identifier(name)] = None
    return sorted(found)


def identifier(name: str) -> str:
    """`GPL-2+` is `GPL-2.0-or-later`."""
    if name.lower() in SPDX:
        return SPDX[name.lower()]
    gnu = GNU.fullmatch(name.lower())
    if gnu:
        family, version, later = gnu.groups()
        number = version if "." in version else f"{version}.0"
        return f"{family.upper()}-{number}-{'or-later' if later else 'only'}"
    return "LicenseRef-Debian-" + re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")
