//! What the vendor's CSI driver (kubernetes-sigs/alibaba-cloud-csi-driver) expects of the cloud: its requests with
//! their parameters, the fields that it reads, and the codes that it handles. It signs calls about disks, snapshots and
//! attachments with V1, those about tags, changes and descriptions of instances with V3.

use super::*;

const REGION: (&str, &str) = ("RegionId", "cn-beijing");

impl TestCloud {
    async fn tea(&self, action: &str, pairs: &[(&str, &str)]) -> (u16, Value) {
        self.v3(&signer(), action, pairs).await
    }

    /// The rows of a batch, as the driver's waiters request it.
    async fn batch(&self, ids: &[&str]) -> Vec<Value> {
        let ids = json!(ids).to_string();
        let pairs = [REGION, ("DiskIds", ids.as_str()), ("PageSize", "100")];
        let (status, body) = self.v1("DescribeDisks", &pairs).await;
        assert_eq!(status, 200, "{body}");
        body["Disks"]["Disk"].as_array().unwrap().clone()
    }

    async fn row(&self, id: &str) -> Value {
        let mut rows = self.batch(&[id]).await;
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows.remove(0)
    }
}

fn is_ok(response: &(u16, Value)) {
    assert_eq!(response.0, 200, "{}", response.1);
}

/// `CreateDisk` of a volume: the token is derived from its name, and the name is also a tag.
fn volume(size: &'static str) -> Vec<(&'static str, &'static str)> {
    vec![
        REGION,
        ("ZoneId", "cn-beijing-a"),
        ("DiskCategory", "cloud_essd"),
        ("PerformanceLevel", "PL1"),
        ("Size", size),
        ("DiskName", "pvc-1"),
        ("Encrypted", "false"),
        ("MultiAttach", "Disabled"),
        ("ClientToken", "n:pvc-1"),
        ("Tag.1.Key", "csi.alibabacloud.com/volume-name"),
        ("Tag.1.Value", "pvc-1"),
    ]
}

#[tokio::test]
async fn a_disk_row_has_all_fields_that_the_driver_reads() {
    let test = TestCloud::new(&[]).await;
    let (_, body) = test.v1("CreateDisk", &volume("20")).await;
    let row = test.row(body["DiskId"].as_str().unwrap()).await;
    for field in [
        "DiskId",
        "Status",
        "InstanceId",
        "MultiAttach",
        "SerialNumber",
        "Category",
        "PerformanceLevel",
        "ZoneId",
        "RegionId",
        "KMSKeyId",
        "ResourceGroupId",
        "StorageClusterId",
    ] {
        assert!(row[field].is_string(), "{field}: {row}");
    }
    for field in ["Size", "ProvisionedIops"] {
        assert!(row[field].is_number(), "{field}: {row}");
    }
    assert!(
        row["Encrypted"].is_boolean() && row["BurstingEnabled"].is_boolean(),
        "{row}"
    );
    assert!(row["Attachments"]["Attachment"].is_array(), "{row}");
    let tag = &row["Tags"]["Tag"][0];
    assert_eq!(
        (&tag["TagKey"], &tag["TagValue"]),
        (&json!("csi.alibabacloud.com/volume-name"), &json!("pvc-1"))
    );
    assert_eq!(row["MultiAttach"], "Disabled");
}

#[tokio::test]
async fn a_repeated_creation_returns_the_disk_and_a_changed_one_is_found_by_its_tag() {
    let test = TestCloud::new(&[]).await;
    let first = test.v1("CreateDisk", &volume("20")).await;
    let again = test.v1("CreateDisk", &volume("20")).await;
    assert_eq!(first.1["DiskId"], again.1["DiskId"]);
    let changed = test.v1("CreateDisk", &volume("40")).await;
    assert_eq!(changed.1["Code"], "IdempotentParameterMismatch");
    let name = [
        REGION,
        ("Tag.1.Key", "csi.alibabacloud.com/volume-name"),
        ("Tag.1.Value", "pvc-1"),
    ];
    let (_, found) = test.v1("DescribeDisks", &name).await;
    assert_eq!(found["Disks"]["Disk"][0]["DiskId"], first.1["DiskId"]);
    let mut from_snapshot = volume("20");
    from_snapshot.extend([("SnapshotId", "s-none")]);
    from_snapshot.retain(|(name, _)| *name != "ClientToken");
    assert_eq!(
        test.v1("CreateDisk", &from_snapshot).await.1["Code"],
        "InvalidSnapshotId.NotFound"
    );
}

#[tokio::test]
async fn attach_and_detach_end_in_the_states_that_the_waiters_compare() {
    let test = TestCloud::new(&[]).await;
    let (disk, node) = (test.create().await, test.node());
    let pair = [("DiskId", disk.as_str()), ("InstanceId", node.as_str())];
    is_ok(&test.v1("AttachDisk", &pair).await);
    let row = test.row(&disk).await;
    assert_eq!((&row["Status"], &row["InstanceId"]), (&json!("In_use"), &json!(node)));
    assert_eq!(row["Attachments"]["Attachment"][0]["InstanceId"], json!(node));
    // The document lists two codes for it.
    let refused = code(&test.v1("DeleteDisk", &[("DiskId", &disk)]).await);
    assert!(
        ["403 IncorrectDiskStatus", "403 DiskStillAttached"].contains(&&*refused),
        "{refused}"
    );
    is_ok(&test.v1("DetachDisk", &pair).await);
    let row = test.row(&disk).await;
    assert_eq!((&row["Status"], &row["InstanceId"]), (&json!("Available"), &json!("")));
    assert_eq!(row["Attachments"]["Attachment"], json!([]));
    let unknown = [("DiskId", disk.as_str()), ("InstanceId", "i-none")];
    assert_eq!(
        code(&test.v1("AttachDisk", &unknown).await),
        "404 InvalidInstanceId.NotFound"
    );
    // A deletion is complete when the list no longer contains the disk; the list itself succeeds.
    is_ok(&test.v1("DeleteDisk", &[("DiskId", &disk)]).await);
    assert!(test.batch(&[&disk, "d-none"]).await.is_empty());
}

#[tokio::test]
async fn an_attached_disk_grows_online_and_shows_its_size_at_once() {
    let test = TestCloud::new(&[]).await;
    let (disk, node) = (test.create().await, test.node());
    is_ok(&test.v1("AttachDisk", &[("DiskId", &disk), ("InstanceId", &node)]).await);
    // Without a ClientToken.
    let order = [REGION, ("DiskId", disk.as_str()), ("NewSize", "40"), ("Type", "online")];
    is_ok(&test.v1("ResizeDisk", &order).await);
    assert_eq!(test.row(&disk).await["Size"], 40);
}

#[tokio::test]
async fn a_change_is_validated_by_a_dry_run_and_followed_by_its_task() {
    let test = TestCloud::new(&[]).await;
    let disk = test.create().await;
    let order = [REGION, ("DiskId", disk.as_str()), ("DiskCategory", "cloud_auto")];
    let dry = test
        .tea("ModifyDiskSpec", &[&order[..], &[("DryRun", "true")]].concat())
        .await;
    assert_eq!(dry.1["Code"], "DryRunOperation");
    assert_eq!(test.row(&disk).await["Category"], "cloud_essd");
    let (_, changed) = test.tea("ModifyDiskSpec", &order).await;
    let task = changed["TaskId"].as_str().unwrap();
    let (_, tasks) = test.tea("DescribeTasks", &[REGION, ("TaskIds", task)]).await;
    assert_eq!(tasks["TaskSet"]["Task"][0]["TaskStatus"], "Finished");
    assert_eq!(test.row(&disk).await["Category"], "cloud_auto");
    let same = test
        .tea("ModifyDiskSpec", &[&order[..], &[("DryRun", "true")]].concat())
        .await;
    assert_eq!(code(&same), "403 NoChangeInDiskCategoryAndPerformanceLevel");
    let bursting = [REGION, ("DiskId", disk.as_str()), ("BurstingEnabled", "true")];
    is_ok(&test.tea("ModifyDiskAttribute", &bursting).await);
    assert_eq!(test.row(&disk).await["BurstingEnabled"], true);
}

#[tokio::test]
async fn tags_are_set_and_removed() {
    let test = TestCloud::new(&[]).await;
    let disk = test.create().await;
    let target = [REGION, ("ResourceType", "disk"), ("ResourceId.1", disk.as_str())];
    let set = [&target[..], &[("Tag.1.Key", "k"), ("Tag.1.Value", "v")]].concat();
    is_ok(&test.tea("TagResources", &set).await);
    assert!(test.row(&disk).await["Tags"].to_string().contains("\"k\""));
    is_ok(
        &test
            .tea("UntagResources", &[&target[..], &[("TagKey.1", "k")]].concat())
            .await,
    );
    assert!(!test.row(&disk).await["Tags"].to_string().contains("\"k\""));
}

#[tokio::test]
async fn a_snapshot_is_described_until_it_is_usable_and_deleted_by_force() {
    let test = TestCloud::new(&[]).await;
    let disk = test.create().await;
    let order = [
        ("DiskId", disk.as_str()),
        ("SnapshotName", "snapshot-1"),
        ("ClientToken", "n:snapshot-1"),
    ];
    let (status, body) = test.v1("CreateSnapshot", &order).await;
    assert_eq!(status, 200, "{body}");
    let snapshot = body["SnapshotId"].as_str().unwrap();
    let list = [REGION, ("SnapshotIds", &*json!([snapshot]).to_string())].map(|(name, value)| (name, value.to_owned()));
    let list: Vec<_> = list.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let (_, body) = test.v1("DescribeSnapshots", &list).await;
    let row = &body["Snapshots"]["Snapshot"][0];
    assert_eq!(
        (&row["Status"], &row["Available"]),
        (&json!("accomplished"), &json!(true))
    );
    assert_eq!(row["SourceDiskId"], json!(disk));
    assert!(
        row["CreationTime"].as_str().is_some_and(|time| !time.is_empty()),
        "{row}"
    );
    is_ok(
        &test
            .v1("DeleteSnapshot", &[("SnapshotId", snapshot), ("Force", "true")])
            .await,
    );
    assert_eq!(
        test.v1("DescribeSnapshots", &list).await.1["Snapshots"]["Snapshot"],
        json!([])
    );
}

#[tokio::test]
async fn a_node_reads_its_type_its_disks_and_the_categories_of_its_zone() {
    let test = TestCloud::new(&["--nodes=i-one=cn-beijing-a=ecs.g8i.large"]).await;
    let kind = [("InstanceTypes.1", "ecs.g8i.large"), ("MaxResults", "100")];
    let (_, types) = test.tea("DescribeInstanceTypes", &kind).await;
    assert!(
        types["InstanceTypes"]["InstanceType"][0]["DiskQuantity"].as_u64() > Some(1),
        "{types}"
    );
    let disks = [REGION, ("InstanceId", "i-one"), ("MaxResults", "100")];
    let (status, listed) = test.tea("DescribeDisks", &disks).await;
    assert!(status == 200 && listed["NextToken"] == "", "{listed}");
    let stock = [
        REGION,
        ("DestinationResource", "DataDisk"),
        ("ResourceType", "disk"),
        ("InstanceType", "ecs.g8i.large"),
    ];
    for place in [("ZoneId", "cn-beijing-a"), ("Scope", "region")] {
        let (status, zones) = test
            .tea("DescribeAvailableResource", &[&stock[..], &[place]].concat())
            .await;
        assert_eq!(status, 200, "{zones}");
        assert!(zones["AvailableZones"]["AvailableZone"].is_array(), "{zones}");
    }
}
