"""The results that both SDKs must get from the fake cloud. `self.sdk` is one of them, `self.cloud` the cloud."""

import json
import urllib.request
import uuid

from cloud import NODE, PATIENCE, REGION, SECRET, ZONE, Cloud, Refusal, wait_for


class Story:
    Sdk = None

    @classmethod
    def setUpClass(cls):
        cls.cloud = Cloud(
            "--create-delay=200ms", "--attach-delay=200ms", "--detach-delay=200ms",
            "--snapshot-delay=200ms", "--missing-is-error",
        )  # fmt: skip
        cls.sdk = cls.Sdk(cls.cloud)

    @classmethod
    def tearDownClass(cls):
        cls.cloud.close()

    def refused(self, status, code, call):
        with self.assertRaises(Refusal) as caught:
            call()
        refusal = caught.exception
        self.assertEqual((refusal.status, refusal.code), (status, code), refusal)
        return refusal

    def order(self, name, **more):
        order = {
            "RegionId": REGION,
            "ZoneId": ZONE,
            "DiskCategory": "cloud_essd",
            "Size": 20,
            "DiskName": name,
            "ClientToken": str(uuid.uuid4()),
        }
        return order | more

    def create(self, name, **more):
        return self.sdk.call("CreateDisk", **self.order(name, **more))["DiskId"]

    def disk(self, disk):
        ids = json.dumps([disk])
        response = self.sdk.call("DescribeDisks", RegionId=REGION, DiskIds=ids)
        rows = response["Disks"]["Disk"]
        self.assertLessEqual(len(rows), 1)
        return rows[0] if rows else None

    def status(self, disk, wanted):
        def look():
            row = self.disk(disk)
            return row if row and row["Status"] == wanted else None

        return wait_for(f"{disk} {wanted}", look)

    def snapshot(self, snapshot):
        ids = json.dumps([snapshot])
        response = self.sdk.call("DescribeSnapshots", RegionId=REGION, SnapshotIds=ids)
        rows = response["Snapshots"]["Snapshot"]
        return rows[0] if rows else None

    def test_lifecycle_of_a_disk(self):
        tags = [{"Key": "own er/a&b=c", "Value": "测试 *~+"}, {"Key": "empty", "Value": ""}]
        disk = self.create("whole-life", Tag=tags)
        row = self.status(disk, "Available")
        self.assertEqual(row["SerialNumber"], disk.removeprefix("d-"))
        self.assertEqual((row["Size"], row["Category"], row["ZoneId"]), (20, "cloud_essd", ZONE))
        self.assertEqual((row["InstanceId"], row["Attachments"]["Attachment"]), ("", []))
        shown = {tag["TagKey"]: tag["TagValue"] for tag in row["Tags"]["Tag"]}
        self.assertEqual(shown, {tag["Key"]: tag["Value"] for tag in tags})

        self.sdk.call("AttachDisk", InstanceId=NODE, DiskId=disk)
        row = self.status(disk, "In_use")
        self.assertEqual(row["InstanceId"], NODE)
        self.assertEqual(row["Attachments"]["Attachment"][0]["InstanceId"], NODE)

        response = self.sdk.call("CreateSnapshot", DiskId=disk, SnapshotName="one", Tag=tags)
        snapshot = response["SnapshotId"]
        row = wait_for("the snapshot", lambda: self.done(snapshot))
        self.assertEqual((row["Progress"], row["Available"], row["SourceDiskId"]), ("100%", True, disk))
        self.assertRegex(row["CreationTime"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

        self.sdk.call("ResizeDisk", DiskId=disk, NewSize=30, Type="online")
        wait_for("the new size", lambda: self.disk(disk)["Size"] == 30)

        self.sdk.call("DetachDisk", InstanceId=NODE, DiskId=disk)
        row = self.status(disk, "Available")
        self.assertEqual((row["InstanceId"], row["Attachments"]["Attachment"]), ("", []))

        copy = self.create("copy", SnapshotId=snapshot)
        self.assertEqual(self.status(copy, "Available")["SourceSnapshotId"], snapshot)
        self.refused(
            403, "SnapshotCreatedDisk", lambda: self.sdk.call("DeleteSnapshot", SnapshotId=snapshot)
        )
        self.sdk.call("DeleteSnapshot", SnapshotId=snapshot, Force=True)
        self.assertIsNone(self.snapshot(snapshot))
        for each in (disk, copy):
            self.sdk.call("DeleteDisk", DiskId=each)
            self.assertIsNone(self.disk(each))
        self.assertEqual({call["via"] for call in self.cloud.calls("AttachDisk")}, {self.sdk.via})

    def done(self, snapshot):
        row = self.snapshot(snapshot)
        return row if row and row["Status"] == "accomplished" else None

    def test_a_repeated_create_returns_the_same_disk(self):
        order = self.order("repeated")
        first = self.sdk.call("CreateDisk", **order)["DiskId"]
        self.assertEqual(self.sdk.call("CreateDisk", **order)["DiskId"], first)
        other = order | {"Size": 30}
        self.refused(
            400, "IdempotentParameterMismatch", lambda: self.sdk.call("CreateDisk", **other)
        )
        self.assertEqual(len(self.cloud.disks("repeated")), 1)

    def test_disks_are_tagged_and_found_by_their_tags(self):
        disk, other = self.create("tagged"), self.create("other")
        tag = [{"Key": "found-by", "Value": self.sdk.via}]
        self.sdk.call(
            "TagResources", RegionId=REGION, ResourceType="disk", ResourceId=[disk], Tag=tag
        )
        response = self.sdk.call("DescribeDisks", RegionId=REGION, Tag=tag)
        self.assertEqual([row["DiskId"] for row in response["Disks"]["Disk"]], [disk])
        self.assertEqual(self.disk(other)["Tags"]["Tag"], [])
        of_disk = {"RegionId": REGION, "ResourceType": "disk", "ResourceId": [disk]}
        response = self.sdk.call("ListTagResources", **of_disk)
        (row,) = response["TagResources"]["TagResource"]
        self.assertEqual((row["ResourceId"], row["TagKey"]), (disk, "found-by"))
        self.sdk.call("UntagResources", TagKey=["found-by"], **of_disk)
        self.assertEqual(self.disk(disk)["Tags"]["Tag"], [])

    def test_a_task_changes_the_category_of_a_disk(self):
        disk = self.create("changing")
        self.status(disk, "Available")
        self.refused(
            400, "DryRunOperation",
            lambda: self.sdk.call(
                "ModifyDiskSpec", DiskId=disk, DiskCategory="cloud_auto", DryRun=True
            ),
        )  # fmt: skip
        response = self.sdk.call("ModifyDiskSpec", DiskId=disk, DiskCategory="cloud_auto")
        task = response["TaskId"]

        def look():
            response = self.sdk.call("DescribeTasks", RegionId=REGION, TaskIds=task)
            (row,) = response["TaskSet"]["Task"]
            return row if row["TaskStatus"] == "Finished" else None

        self.assertEqual(wait_for("the task", look)["TaskId"], task)
        self.assertEqual(self.disk(disk)["Category"], "cloud_auto")

    def test_the_health_of_a_disk_is_described(self):
        disk = self.create("healthy")
        self.status(disk, "Available")
        response = self.sdk.call("DescribeDisksFullStatus", RegionId=REGION, DiskId=[disk])
        (row,) = response["DiskFullStatusSet"]["DiskFullStatusType"]
        self.assertEqual((row["DiskId"], row["Status"]["Name"]), (disk, "Available"))

    def test_pages_are_walked_by_token(self):
        made = {self.create(f"page-{n}", Tag=[{"Key": "page", "Value": "1"}]) for n in range(23)}
        seen, token, pages = [], None, 0
        while pages < 10:
            more = {"NextToken": token} if token else {}
            response = self.sdk.call(
                "DescribeDisks", RegionId=REGION, MaxResults=10,
                Tag=[{"Key": "page", "Value": "1"}], **more,
            )  # fmt: skip
            seen += [row["DiskId"] for row in response["Disks"]["Disk"]]
            pages += 1
            token = response.get("NextToken")
            if not token:
                break
        self.assertEqual((len(seen), set(seen), pages), (23, made, 3))
        response = self.sdk.call("DescribeDisks", RegionId=REGION, PageSize=10, PageNumber=1)
        self.assertGreaterEqual(response["TotalCount"], 23)

    def test_instances_types_stock_and_regions_are_described(self):
        ids = json.dumps([NODE, "i-nobody"])
        response = self.sdk.call("DescribeInstances", RegionId=REGION, InstanceIds=ids)
        (row,) = response["Instances"]["Instance"]
        self.assertEqual((row["InstanceId"], row["ZoneId"], row["Status"]), (NODE, ZONE, "Running"))
        response = self.sdk.call("DescribeInstanceTypes", InstanceTypes=["ecs.g6.large"])
        (kind,) = response["InstanceTypes"]["InstanceType"]
        self.assertEqual((kind["InstanceTypeId"], kind["DiskQuantity"]), ("ecs.g6.large", 17))
        self.assertIn(kind["NvmeSupport"], ("required", "supported", "unsupported"))
        response = self.sdk.call(
            "DescribeAvailableResource", RegionId=REGION, DestinationResource="DataDisk",
            ResourceType="disk", ZoneId=ZONE,
        )  # fmt: skip
        (zone,) = response["AvailableZones"]["AvailableZone"]
        (resource,) = zone["AvailableResources"]["AvailableResource"]
        offers = {offer["Value"] for offer in resource["SupportedResources"]["SupportedResource"]}
        self.assertIn("cloud_essd", offers)
        regions = self.sdk.call("DescribeRegions")["Regions"]["Region"]
        self.assertIn(REGION, [region["RegionId"] for region in regions])

    def test_an_error_has_code_status_and_request_id(self):
        for action, parameters, status, code in [
            ("DeleteDisk", {"DiskId": "d-nothing"}, 404, "InvalidDiskId.NotFound"),
            ("AttachDisk", {"DiskId": "d-nothing", "InstanceId": NODE}, 404, "InvalidDiskId.NotFound"),
            ("DeleteSnapshot", {"SnapshotId": "s-nothing"}, 404, "InvalidSnapshotId.NotFound"),
            ("AttachDisk", {"DiskId": "d-nothing", "InstanceId": "i-nobody"}, 404, None),
            ("DescribeDisks", {"RegionId": REGION, "DiskIds": "oops"}, 400, "InvalidParameter.DiskIds"),
        ]:
            with self.subTest(action=action, code=code):
                with self.assertRaises(Refusal) as caught:
                    self.sdk.call(action, **parameters)
                refusal = caught.exception
                self.assertEqual(refusal.status, status)
                if code:
                    self.assertEqual(refusal.code, code)
                last = self.cloud.calls(action)[-1]
                self.assertEqual((refusal.code, refusal.request_id), (last["code"], last["request_id"]))

    def test_throttling_is_recognized(self):
        limit = {"throttle": {"actions": {"DescribeRegions": 0}}}
        with self.cloud.configured(limit, {"throttle": None}):
            refusal = self.refused(400, "Throttling", lambda: self.sdk.call("DescribeRegions"))
        self.check_throttling(refusal.original)

    def test_the_account_is_throttled(self):
        with self.cloud.configured({"throttle": {"user": 0}}, {"throttle": None}):
            refusal = self.refused(400, "Throttling.User", lambda: self.sdk.call("DescribeRegions"))
        self.check_throttling(refusal.original)

    def check_throttling(self, error):
        """Checks the SDK's view of the error beyond its code."""

    def test_a_wrong_secret_and_an_unknown_key_are_distinguished(self):
        wrong = self.Sdk(self.cloud, secret="another")
        self.refused(400, wrong.wrong_secret, lambda: wrong.call("DescribeRegions"))
        stranger = self.Sdk(self.cloud, key="LTAI5tSTRANGER")
        self.refused(404, "InvalidAccessKeyId.NotFound", lambda: stranger.call("DescribeRegions"))

    def test_without_permission_writes_fail_and_lists_are_empty(self):
        disk = self.create("denied")
        with self.cloud.configured({"denied": ["*"]}, {"denied": []}):
            self.refused(403, "Forbidden.RAM", lambda: self.sdk.call("DeleteDisk", DiskId=disk))
            self.assertIsNone(self.disk(disk))
        self.assertIsNotNone(self.disk(disk))

    def strike(self, action, kind, times=1):
        fault = {"action": action, "kind": kind, "times": times}
        return self.cloud.configured({"faults": [fault]}, {"faults": []})

    def test_server_errors_keep_their_status(self):
        for kind, status, code in [
            ("internal-error", 500, "InternalError"),
            ("service-unavailable", 503, "ServiceUnavailable"),
        ]:
            with self.subTest(kind), self.strike("DescribeRegions", kind, 10):
                self.refused(status, code, lambda: self.sdk.call("DescribeRegions"))

    def test_an_error_without_a_message_is_parsed(self):
        with self.strike("DeleteDisk", "null-message"):
            refusal = self.refused(
                404, "InvalidDiskId.NotFound", lambda: self.sdk.call("DeleteDisk", DiskId="d-no")
            )
        self.assertIsNotNone(refusal.request_id)

    def test_a_lost_response_is_an_error_and_the_repeated_call_returns_the_disk(self):
        for kind in ["reset-after", "truncated", "empty", "html"]:
            with self.subTest(kind):
                order = self.order(f"lost-{kind}")
                with self.strike("CreateDisk", kind):
                    with self.assertRaises(Exception):
                        self.sdk.call("CreateDisk", **order)
                (made,) = self.cloud.disks(order["DiskName"])
                self.assertEqual(self.sdk.call("CreateDisk", **order)["DiskId"], made["id"])

    def test_role_credentials_sign_only_with_their_token(self):
        base = f"http://{self.cloud.address}/imds/{NODE}/latest/meta-data/ram/security-credentials/"
        with urllib.request.urlopen(base, timeout=PATIENCE) as response:
            role = response.read().decode()
        with urllib.request.urlopen(base + role, timeout=PATIENCE) as response:
            found = json.load(response)
        key, secret, token = (
            found[name] for name in ("AccessKeyId", "AccessKeySecret", "SecurityToken")
        )
        self.assertNotEqual(secret, SECRET)
        self.Sdk(self.cloud, key, secret, token).call("DescribeRegions")
        without = self.Sdk(self.cloud, key, secret)
        self.refused(400, "MissingSecurityToken", lambda: without.call("DescribeRegions"))
        wrong = self.Sdk(self.cloud, key, secret, token + "x")
        self.refused(
            400,
            "InvalidSecurityToken.MismatchWithAccessKey",
            lambda: wrong.call("DescribeRegions"),
        )
