"""The old SDK against the fake cloud."""

import json
import unittest
import xml.etree.ElementTree as xml

from aliyunsdkcore.acs_exception.exceptions import ServerException
from aliyunsdkcore.request import CommonRequest

import v1
from cloud import REGION
from story import Story


class OldSdk(Story, unittest.TestCase):
    Sdk = v1.Sdk

    def check_throttling(self, error):
        self.assertIsInstance(error, ServerException)

    def test_without_a_format_responses_are_xml(self):
        disk = self.create("in-xml", Tag=[{"Key": "a<b", "Value": 'c&"d"'}])
        body = self.sdk.raw("DescribeDisks", RegionId=REGION, DiskName="in-xml")
        root = xml.fromstring(body)
        self.assertEqual(root.tag, "DescribeDisksResponse")
        self.assertEqual([row.findtext("DiskId") for row in root.iter("Disk")], [disk])
        self.assertEqual(root.findtext("Disks/Disk/Size"), "20")
        self.assertEqual(root.findtext("Disks/Disk/Portable"), "true")
        self.assertEqual(root.findtext("Disks/Disk/Tags/Tag/TagKey"), "a<b")
        self.assertEqual(root.findtext("Disks/Disk/Tags/Tag/TagValue"), 'c&"d"')
        root = xml.fromstring(self.sdk.raw("DeleteDisk", DiskId="d-nothing"))
        self.assertEqual((root.tag, root.findtext("Code")), ("Error", "InvalidDiskId.NotFound"))

    def test_a_role_is_assumed_and_its_keys_sign(self):
        request = CommonRequest()
        request.set_domain("127.0.0.1")
        request.set_protocol_type("http")
        request.set_method("POST")
        request.set_version("2015-04-01")
        request.set_action_name("AssumeRole")
        request.add_query_param("RoleArn", "acs:ram::1000000000000001:role/diskplugin")
        request.add_query_param("RoleSessionName", "sdk-test")
        response = json.loads(self.sdk.client.do_action_with_exception(request))
        found = response["Credentials"]
        keys = (found["AccessKeyId"], found["AccessKeySecret"], found["SecurityToken"])
        assumed = self.Sdk(self.cloud, *keys)
        self.assertIn(REGION, str(assumed.call("DescribeRegions")))
        without = self.Sdk(self.cloud, *keys[:2])
        self.refused(400, "MissingSecurityToken", lambda: without.call("DescribeRegions"))

    def test_automatic_retries_create_one_disk(self):
        # It signs each attempt and keeps the ClientToken. (Without one it creates two disks.)
        patient = self.Sdk(self.cloud, retries=True)
        order = self.order("by-itself")
        before = len(self.cloud.calls("CreateDisk"))
        with self.strike("CreateDisk", "internal-error-after"):
            disk = patient.call("CreateDisk", **order)["DiskId"]
        self.assertEqual([row["id"] for row in self.cloud.disks("by-itself")], [disk])
        calls = self.cloud.calls("CreateDisk")[before:]
        self.assertEqual(len(calls), 2)
        self.assertEqual(len({call["nonce"] for call in calls}), 2)
        self.assertEqual(len({call["params"]["ClientToken"] for call in calls}), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
