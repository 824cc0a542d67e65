"""The new SDK against the fake cloud, and the responses against its models."""

import typing
import unittest

from alibabacloud_ecs20140526 import models
from alibabacloud_tea_openapi.exceptions import ClientException, ThrottlingException
from darabonba.model import DaraModel

import v3
from cloud import NODE, REGION
from story import Story


def drift(model, path):
    """Fields of a model that do not have the type that the SDK declares for them."""
    hints = typing.get_type_hints(type(model).__init__, vars(typing) | {"main_models": models})
    for name, declared in hints.items():
        value = getattr(model, name, None)
        if value is not None and name != "return":
            yield from differs(value, declared, f"{path}.{name}")


def differs(value, declared, path):
    if typing.get_origin(declared) in (list, typing.List):
        (inner,) = typing.get_args(declared)
        if not isinstance(value, list):
            yield f"{path} is {value!r}, which is no list"
            return
        for index, each in enumerate(value):
            yield from differs(each, inner, f"{path}[{index}]")
    elif isinstance(value, DaraModel):
        yield from drift(value, path)
    elif declared is float and type(value) is int:
        return
    elif declared in (str, int, bool, float) and type(value) is not declared:
        yield f"{path} is {value!r}, which is not a {declared.__name__}"


def unknown(sent, read, path):
    """Fields of the response that the SDK's model does not have."""
    if isinstance(sent, dict):
        for name, value in sent.items():
            if name not in (read or {}):
                yield f"{path}.{name}"
            else:
                yield from unknown(value, read[name], f"{path}.{name}")
    elif isinstance(sent, list):
        for one, other in zip(sent, read or []):
            yield from unknown(one, other, path)


class NewSdk(Story, unittest.TestCase):
    Sdk = v3.Sdk

    def check_throttling(self, error):
        self.assertIsInstance(error, ThrottlingException)
        self.assertGreater(error.retry_after, 0)
        self.assertLessEqual(error.retry_after, 60_000)

    def test_a_client_error_is_a_client_exception(self):
        refusal = self.refused(
            404, "InvalidDiskId.NotFound", lambda: self.sdk.call("DeleteDisk", DiskId="d-nothing")
        )
        self.assertIsInstance(refusal.original, ClientException)

    def test_every_field_is_in_the_sdks_models_with_its_type(self):
        disk = self.create("typed", Tag=[{"Key": "a", "Value": "b"}])
        self.status(disk, "Available")
        self.sdk.call("AttachDisk", InstanceId=NODE, DiskId=disk)
        self.status(disk, "In_use")
        self.sdk.call("CreateSnapshot", DiskId=disk, SnapshotName="typed")
        wrong = []
        for action, parameters in [
            ("CreateDisk", self.order("typed-too")),
            ("DescribeDisks", {"RegionId": REGION}),
            ("DescribeSnapshots", {"RegionId": REGION}),
            ("DescribeInstances", {"RegionId": REGION}),
            ("DescribeInstanceTypes", {}),
            (
                "DescribeAvailableResource",
                {"RegionId": REGION, "DestinationResource": "DataDisk", "ResourceType": "disk"},
            ),
            ("DescribeRegions", {}),
            ("ListTagResources", {"RegionId": REGION, "ResourceType": "disk", "ResourceId": [disk]}),
            ("DescribeTasks", {"RegionId": REGION}),
            ("DescribeDisksFullStatus", {"RegionId": REGION, "DiskId": [disk]}),
        ]:
            response = self.sdk.response(action, parameters)
            wrong += drift(response, action)
            wrong += (f"{path} is unknown" for path in unknown(self.sdk.body, response.to_map(), action))
        self.assertEqual(sorted(set(wrong)), [])
        self.sdk.call("DetachDisk", InstanceId=NODE, DiskId=disk)
        self.status(disk, "Available")


if __name__ == "__main__":
    unittest.main(verbosity=2)
