"""The list of parts is SPDX 2.3 and names every part: https://spdx.github.io/spdx-spec/v2.3/"""

import json
import re
import tomllib
import unittest

from image import ARCH, FOLDER, OURS, PROJECT, VERSION, Image, digest

IDENTIFIER = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")
LICENCE = re.compile(r"[A-Za-z0-9.+()-]+( [A-Za-z0-9.+()-]+)*")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.document = json.loads((FOLDER / f"diskplugin-{VERSION}-{ARCH}.spdx.json").read_text())
        cls.packages = {package["name"]: package for package in cls.document["packages"]}
        cls.image = Image()
        cls.driven = len(cls.image.layers) > 1

    def related(self, kind: str) -> list[tuple[str, str]]:
        rows = self.document["relationships"]
        return [(r["spdxElementId"], r["relatedSpdxElement"]) for r in rows if r["relationshipType"] == kind]

    def test_the_document_has_what_the_specification_requires(self):
        document = self.document
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        self.assertEqual(document["dataLicense"], "CC0-1.0")
        self.assertEqual(document["SPDXID"], "SPDXRef-DOCUMENT")
        self.assertTrue(document["name"])
        self.assertRegex(document["documentNamespace"], r"^https://[^#]+$")
        self.assertRegex(document["creationInfo"]["created"], f"^{TIME.pattern}$")
        for creator in document["creationInfo"]["creators"]:
            self.assertRegex(creator, r"^(Tool|Person|Organization): \S")

    def test_every_package_has_what_the_specification_requires(self):
        for package in self.document["packages"]:
            self.assertRegex(package["SPDXID"], f"^{IDENTIFIER.pattern}$")
            for field in ("name", "versionInfo", "downloadLocation"):
                self.assertTrue(package[field], package)
            self.assertIs(package["filesAnalyzed"], False)
            self.assertRegex(package["licenseDeclared"], f"^{LICENCE.pattern}$")
            for reference in package["externalRefs"]:
                self.assertEqual(reference["referenceType"], "purl")
                self.assertRegex(reference["referenceLocator"], r"^pkg:(cargo|deb|oci|generic)/\S+@\S+$")
            for checksum in package.get("checksums", []):
                self.assertEqual(checksum["algorithm"], "SHA256")
                self.assertRegex(checksum["checksumValue"], r"^[0-9a-f]{64}$")

    def test_ids_are_unique_and_relationships_are_between_them(self):
        ids = [package["SPDXID"] for package in self.document["packages"]] + ["SPDXRef-DOCUMENT"]
        self.assertEqual(len(ids), len(set(ids)))
        touched = set()
        for row in self.document["relationships"]:
            touched |= {row["spdxElementId"], row["relatedSpdxElement"]}
        self.assertEqual(touched, set(ids))

    def test_every_licence_without_a_name_of_spdx_is_explained(self):
        explained = {entry["licenseId"] for entry in self.document["hasExtractedLicensingInfos"]}
        for entry in self.document["hasExtractedLicensingInfos"]:
            (path,) = re.findall(r"See /(\S+) in the image", entry["extractedText"])
            self.assertIn(path, self.image.data)
        used = set()
        for package in self.document["packages"]:
            used |= set(re.findall(r"LicenseRef-[A-Za-z0-9.-]+", package["licenseDeclared"]))
        self.assertEqual(used, explained)

    def test_it_is_of_this_very_image(self):
        manifest = self.image.index["manifests"][0]["digest"]
        ((_, described),) = self.related("DESCRIBES")
        (package,) = [p for p in self.document["packages"] if p["SPDXID"] == described]
        self.assertEqual(package["versionInfo"], manifest)
        self.assertEqual(digest(self.image.blob(self.image.index["manifests"][0])), manifest)

    def test_every_package_of_the_image_is_listed_with_its_version_and_files(self):
        records = [path for path in self.image.data if path.startswith("var/lib/dpkg/status.d/")]
        files = set()
        for path in records:
            record = self.image.data[path].decode()
            name = re.search(r"(?m)^Package: (.*)$", record)[1]
            version = re.search(r"(?m)^Version: (.*)$", record)[1]
            package = self.packages[name]
            self.assertEqual(package["versionInfo"], version)
            self.assertTrue(package["externalRefs"][0]["referenceLocator"].startswith(f"pkg:deb/debian/{name}@"))
            files |= set(package["comment"].removeprefix("in the image: ").split())
        made_here = {"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", *("/" + path for path in OURS)}
        there = {"/" + p for p, e in self.image.entries.items() if e.isfile()}
        self.assertEqual(there - files, made_here & there)

    def test_the_crates_are_those_of_the_lock_file_that_the_build_takes(self):
        if not self.driven:
            self.assertFalse(self.related("STATIC_LINK"))
            return
        lock = tomllib.loads((PROJECT / "Cargo.lock").read_text())["package"]
        locked = {(p["name"], p["version"]): p.get("checksum") for p in lock}
        listed = {}
        for package in self.document["packages"]:
            locator = package["externalRefs"][0]["referenceLocator"]
            if locator.startswith("pkg:cargo/") and package["name"] != "diskplugin":
                sums = package.get("checksums") or [{"checksumValue": None}]
                listed[package["name"], package["versionInfo"]] = sums[0]["checksumValue"]
                self.assertNotEqual(package["licenseDeclared"], "NOASSERTION", package["name"])
        self.assertEqual(listed, {key: locked[key] for key in listed})
        linked = {identity for _, identity in self.related("STATIC_LINK")}
        by_id = {p["SPDXID"]: p["name"] for p in self.document["packages"]}
        names = {by_id[identity] for identity in linked}
        self.assertLessEqual({"tokio", "tonic", "reqwest", "rustls", "rust-std"}, names)
        # Of the tests, of other systems, and of the fake cloud.
        self.assertFalse({"proptest", "wiremock", "windows-sys"} & {name for name, _ in listed})
        # Only for building, as nothing of it runs.
        self.assertIn("protox", {by_id[identity] for identity, _ in self.related("BUILD_DEPENDENCY_OF")})
        self.assertNotIn("protox", names)
