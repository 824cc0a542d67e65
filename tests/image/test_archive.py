"""Container engines can read the archive, and it does not depend on the builder, the machine or the time."""

import json
import unittest

from image import ARCH, VERSION, Image, digest

PREFIX = "application/vnd.oci.image."


class Archive(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.image = Image()

    def test_the_layout_has_one_image_of_the_architecture_and_nothing_else(self):
        image = self.image
        self.assertEqual(json.loads(image.files["oci-layout"]), {"imageLayoutVersion": "1.0.0"})
        self.assertEqual(image.index["mediaType"], PREFIX + "index.v1+json")
        (one,) = image.index["manifests"]
        self.assertEqual(one["mediaType"], PREFIX + "manifest.v1+json")
        self.assertEqual(one["platform"], {"architecture": ARCH, "os": "linux"})
        self.assertEqual(image.manifest["config"]["mediaType"], PREFIX + "config.v1+json")
        for layer in image.manifest["layers"]:
            self.assertEqual(layer["mediaType"], PREFIX + "layer.v1.tar+gzip")
        named = [one, image.manifest["config"], *image.manifest["layers"]]
        wanted = {"blobs/" + d["digest"].replace(":", "/") for d in named}
        self.assertEqual(set(image.files) - wanted, {"oci-layout", "index.json", "manifest.json"})
        self.assertLessEqual(wanted, set(image.files))

    def test_the_layers_are_those_that_the_configuration_names(self):
        config = self.image.config
        self.assertEqual((config["architecture"], config["os"]), (ARCH, "linux"))
        self.assertEqual(config["rootfs"]["diff_ids"], [digest(layer) for layer in self.image.layers])
        self.assertEqual(len(config["history"]), len(self.image.layers))

    def test_docker_loads_the_same_image_under_the_same_name(self):
        (docker,) = json.loads(self.image.files["manifest.json"])
        image = self.image.manifest
        path = lambda d: "blobs/" + d["digest"].replace(":", "/")  # noqa: E731
        self.assertEqual(docker["Config"], path(image["config"]))
        self.assertEqual(docker["Layers"], [path(layer) for layer in image["layers"]])
        annotations = self.image.index["manifests"][0]["annotations"]
        self.assertEqual(docker["RepoTags"], [annotations["io.containerd.image.name"]])
        self.assertTrue(docker["RepoTags"][0].endswith(f"/diskplugin:{VERSION}"), docker)
        self.assertEqual(annotations["org.opencontainers.image.ref.name"], VERSION)

    def test_it_runs_the_driver_as_the_user_of_the_chart(self):
        config = self.image.config["config"]
        self.assertEqual(config["Entrypoint"], ["/diskplugin"])
        self.assertNotIn("User", config)
        self.assertNotIn("Cmd", config)
        (path,) = config["Env"]
        self.assertEqual(path, "PATH=/usr/sbin:/usr/bin")
        labels = config["Labels"]
        self.assertEqual(labels["org.opencontainers.image.version"], VERSION)
        self.assertFalse([label for label in labels if "created" in label])

    def test_every_file_is_roots_and_of_the_beginning_of_time(self):
        for member in [*self.image.entries.values(), *self.image.members]:
            owner = (member.uid, member.gid, member.uname, member.gname)
            self.assertEqual((owner, member.mtime), ((0, 0, "", ""), 0), member.name)
        for layer in self.image.manifest["layers"]:
            # RFC 1952: no flags, so no name, and no time.
            self.assertEqual(self.image.blob(layer)[3:8], bytes(5))

    def test_it_is_smaller_than_25_megabytes(self):
        self.assertLess(sum(len(data) for data in self.image.files.values()), 25_000_000)
