"""The content of the image, as SPDX 2.3 in JSON: the driver, its crates, and Debian's packages."""

import json
import re
from dataclasses import dataclass

from apt import Package
from crates import Crate
from licence import licences
from oci import About, timestamp
from root import Root

UNKNOWN = "NOASSERTION"


class Document:
    """Packages, how they go together, and the licences that SPDX has no name for."""

    def __init__(self) -> None:
        self.packages: list[dict] = []
        self.relationships: list[dict] = []
        self.extracted: dict[str, str] = {}

    def package(self, name: str, version: str, licence: str, purl: str, **more: object) -> str:
        """Adds a package and returns its id."""
        kind = purl.split(":", 1)[1].split("/")[0]
        identity = f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.]+", "-", f"{name}-{version}")
        self.packages.append({
            "SPDXID": identity,
            "name": name,
            "versionInfo": version,
            "downloadLocation": UNKNOWN,
            "filesAnalyzed": False,
            "licenseConcluded": UNKNOWN,
            "licenseDeclared": licence or UNKNOWN,
            "copyrightText": UNKNOWN,
            "externalRefs": [
                {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}
            ],
            **more,
        })  # fmt: skip
        return identity

    def relate(self, one: str, kind: str, other: str) -> None:
        """Says how one goes with the other."""
        self.relationships.append(
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
        )


@dataclass
class Driver:
    """The crates of the driver."""

    crates: tuple[list[Crate], list[Crate]]  # In the binary, and only to build it.
    rust: str  # The version of the standard library.
    within: list[str]  # Debian packages, `name=version`, whose code the linker put in.


def sbom(about: About, manifest: str, root: Root, built: Driver | None) -> bytes:
    """The document; `manifest` is the image's digest. Without a driver it is of the tools alone."""
    document = Document()
    image = document.package(
        f"{about.name}:{about.version}", manifest, UNKNOWN,
        f"pkg:oci/diskplugin@{manifest.replace(':', '%3A')}?arch={about.arch}&tag={about.version}",
        primaryPackagePurpose="CONTAINER",
    )  # fmt: skip
    document.relate("SPDXRef-DOCUMENT", "DESCRIBES", image)
    if built:
        parts(document, about, image, built)
    for name, (package, paths) in sorted(root.packages.items()):
        debian_package(document, root, image, package, paths)
    return encode(about, manifest, document)


def parts(document: Document, about: About, image: str, built: Driver) -> None:
    """The driver and all that is in its file."""
    driver = document.package(
        "diskplugin", about.version, "Apache-2.0", f"pkg:cargo/diskplugin@{about.version}",
        primaryPackagePurpose="APPLICATION",
    )  # fmt: skip
    document.relate(image, "CONTAINS", driver)
    for group, only_builds in zip(built.crates, (False, True)):
        for crate in group:
            hashes = [{"algorithm": "SHA256", "checksumValue": crate.sha256}] if crate.sha256 else []
            purl = f"pkg:cargo/{crate.name}@{crate.version.replace('+', '%2B')}"
            one = document.package(crate.name, crate.version, crate.licence, purl, checksums=hashes)
            if only_builds:
                document.relate(one, "BUILD_DEPENDENCY_OF", driver)
            else:
                document.relate(driver, "STATIC_LINK", one)
    one = document.package("rust-std", built.rust, "MIT OR Apache-2.0", f"pkg:generic/rust-std@{built.rust}")
    document.relate(driver, "STATIC_LINK", one)
    for fact in built.within:
        name, version = fact.split("=")
        one = document.package(name, version, UNKNOWN, debian(name, version, None))
        document.relate(driver, "STATIC_LINK", one)


def debian_package(document: Document, root: Root, image: str, package: Package, paths: list[str]) -> None:
    """A package with its files in the image."""
    name = package.name
    copyright_file = (root.entries[f"usr/share/doc/{name}/copyright"].data or b"").decode(errors="replace")
    found = licences(copyright_file)
    for licence in found:
        if licence.startswith("LicenseRef-"):
            document.extracted[licence] = f"See /usr/share/doc/{name}/copyright in the image."
    more = {"homepage": package.homepage} if package.homepage else {}
    one = document.package(
        name, package.version, " AND ".join(found), debian(name, package.version, package.arch),
        supplier="Organization: Debian", sourceInfo=f"built from Debian's source package {package.source}",
        licenseComments="of all files of the source package" if found else f"see /usr/share/doc/{name}/copyright",
        comment="in the image: " + " ".join("/" + path for path in sorted(paths)), **more,
    )  # fmt: skip
    document.relate(image, "CONTAINS", one)


def debian(name: str, version: str, arch: str | None) -> str:
    """A package's address among all packages of the world."""
    quoted = version.replace("+", "%2B").replace(":", "%3A")
    return f"pkg:deb/debian/{name.replace('+', '%2B')}@{quoted}" + (f"?arch={arch}" if arch else "")


def encode(about: About, manifest: str, document: Document) -> bytes:
    """The document as people can read it."""
    title = f"diskplugin-{about.version}-{about.arch}"
    written = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": title,
        # Unique to the image, and the same whenever the same image is made.
        "documentNamespace": f"https://spdx.org/spdxdocs/{title}-{manifest.split(':')[1]}",
        "creationInfo": {
            "created": timestamp(about.epoch),
            "creators": ["Tool: diskplugin-scripts-image"],
        },
        "packages": document.packages,
        "relationships": document.relationships,
        "hasExtractedLicensingInfos": [
            {"licenseId": licence, "extractedText": text}
            for licence, text in sorted(document.extracted.items())
        ],
    }  # fmt: skip
    return json.dumps(written, indent=1).encode() + b"\n"
