use super::params::params;
use super::*;
use crate::action::*;
use crate::model::*;

fn page<R: Row>(json: &str) -> Page<R> {
    read(json.as_bytes()).unwrap()
}

#[test]
fn a_documented_row_is_parsed() {
    let json = r#"{"RequestId":"R","TotalCount":1,"NextToken":"","Disks":{"Disk":[{
        "DiskId":"d-bp18um4r4f2fve24k7qz","SerialNumber":"bp18um4r4f2fve24k7qz",
        "ZoneId":"cn-hangzhou-i","DiskName":"n","Type":"data","Category":"cloud_essd",
        "PerformanceLevel":"PL1","Size":60,"Status":"In_use","InstanceId":"i-bp67acfmxazb4qw1e9rt",
        "Attachments":{"Attachment":[{"InstanceId":"i-bp67acfmxazb4qw1e9rt","Device":"/dev/xvdb"}]},
        "Encrypted":false,"DeleteWithInstance":true,"KMSKeyId":"","SourceSnapshotId":"","CreationTime":"2021-06-07T06:08:54Z",
        "Tags":{"Tag":[{"TagKey":"k","TagValue":"v"}]}}]}}"#;
    let page = page::<Disk>(json);
    assert_eq!(page.next, None);
    let disk = &page.rows[0];
    assert!(disk.is_in_use_on(&"i-bp67acfmxazb4qw1e9rt".parse().unwrap()));
    assert_eq!(disk.serial.as_ref().unwrap().as_str(), "bp18um4r4f2fve24k7qz");
    assert_eq!((disk.size, &disk.tags["k"]), (Gib(60), &"v".to_owned()));
    assert_eq!(disk.kms_key, None);
    assert!(disk.delete_with_instance && disk.is_lost_with_instance());
}

#[test]
fn a_sparse_row_is_parsed() {
    let sparse = r#"{"Disks":{"Disk":[{"DiskId":"d-1","Status":"Available","Category":"cloud",
        "Size":"5","Tags":null,"Attachments":null,"Encrypted":null}]}}"#;
    let page = page::<Disk>(sparse);
    assert!(page.rows[0].is_free() && !page.rows[0].delete_with_instance);
}

#[test]
fn a_malformed_row_is_reported_and_does_not_affect_others() {
    let json = r#"{"Disks":{"Disk":[
        {"DiskId":"d-1","Category":"cloud","Size":5},
        {"DiskId":"d-2","Category":"cloud","Size":{},"Status":"Available"},
        {"DiskId":"../x","Category":"cloud","Size":5,"Status":"Available"},
        "what",
        {"DiskId":"d-3","Category":"cloud","Size":5,"Status":"Available",
         "OperationLocks":{"OperationLock":[{"LockReason":"financial"},{}]}}]}}"#;
    let page = page::<Disk>(json);
    let ids: Vec<_> = page.rows.iter().map(|disk| disk.id.as_str()).collect();
    assert_eq!(ids, ["d-3"]);
    assert_eq!(page.rows[0].locks, ["financial", "unknown"]);
    let texts: Vec<_> = page.unreadable.iter().map(ToString::to_string).collect();
    assert_eq!(texts[0], "malformed row of d-1: missing field `Status`");
    assert!(texts[1].starts_with("malformed row of d-2"), "{texts:?}");
    assert!(texts[2].contains("../x"), "{texts:?}");
    assert!(texts[3].contains("a resource without an id"), "{texts:?}");
}

#[test]
fn an_array_is_not_a_response_and_not_a_row() {
    assert!(read::<Created<DiskId>>(br#"["d-1"]"#).is_err());
    let page = page::<InstanceType>(r#"{"InstanceTypes":{"InstanceType":[["ecs.g6.large",17]]}}"#);
    assert_eq!((page.rows.len(), page.unreadable.len()), (0, 1));
}

#[test]
fn ended_events_are_omitted() {
    let json = r#"{"DiskFullStatusSet":{"DiskFullStatusType":[
        {"DiskId":"d-1","HealthStatus":{"Name":"Impaired","Code":0},"DiskEventSet":{"DiskEventType":[
          {"EventId":"e-1","EventTime":"2021-06-07T06:08:54Z","EventEndTime":"","EventType":{"Name":"Stalled"}},
          {"EventId":"e-2","EventEndTime":"2021-06-07T06:08:54Z","EventType":{"Name":"Degraded"}}]}},
        {"DiskId":"d-2","HealthStatus":{"Name":"Ok"},"DiskEventSet":null},
        {"DiskId":"d-3"},{"DiskId":"d-4","HealthStatus":{"Name":""}}]}}"#;
    let page = page::<DiskHealth>(json);
    let texts: Vec<_> = page.rows.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["disk d-1 is Impaired, Stalled (event e-1)", "disk d-2 is Ok"]);
    let unreadable: Vec<_> = page.unreadable.into_iter().map(|row| row.id.unwrap()).collect();
    assert_eq!(unreadable, ["d-3", "d-4"]);
}

#[test]
fn a_snapshot_before_its_cut_has_no_creation_time_and_may_have_a_size_as_text() {
    let json = r#"{"Snapshots":{"Snapshot":[{"SnapshotId":"s-1","SourceDiskId":"d-1",
        "SourceDiskSize":"40","Status":"progressing","CreationTime":"","Available":false}]}}"#;
    let page = page::<Snapshot>(json);
    assert_eq!(page.rows[0].created, None);
    assert_eq!(page.rows[0].source_size, Gib(40));
    assert!(!page.rows[0].available);
}

#[test]
fn a_malformed_snapshot_is_reported_and_does_not_affect_others() {
    let json = r#"{"Snapshots":{"Snapshot":[{"SnapshotId":"s-1","Status":"accomplished"},
        {"SnapshotId":"s-2","SourceDiskSize":40,"Status":"accomplished"}]}}"#;
    let page = page::<Snapshot>(json);
    assert_eq!((page.rows.len(), page.rows[0].id.as_str()), (1, "s-2"));
    assert_eq!(page.unreadable[0].id.as_deref(), Some("s-1"));
}

#[test]
fn a_group_member_is_recognized_by_its_name_or_description() {
    let row = |more: &str| {
        let json = format!(
            r#"{{"Snapshots":{{"Snapshot":[{{"SnapshotId":"s-1","SourceDiskSize":"40",
            "Status":"accomplished",{more}}}]}}}}"#
        );
        let mut page = page::<Snapshot>(&json);
        page.rows.remove(0).group.map(|id| id.to_string())
    };
    let name = r#""SnapshotName":"Created_from_ssg-bp2x_d-1""#;
    assert_eq!(row(name).as_deref(), Some("ssg-bp2x"));
    let described = r#""SnapshotName":"x","Description":"Created_from_ssg-3""#;
    assert_eq!(row(described).as_deref(), Some("ssg-3"));
    assert_eq!(row(r#""SnapshotName":"Created_from_ssg-""#), None);
    assert_eq!(row(r#""SnapshotName":"manual""#), None);
}

#[test]
fn a_group_is_parsed_with_its_members_and_tags() {
    let json = r#"{"NextToken":"","SnapshotGroups":{"SnapshotGroup":[{
        "SnapshotGroupId":"ssg-1","Name":"n","Status":"accomplished",
        "CreationTime":"2021-03-23T10:58:48Z","Tags":{"Tag":[{"Key":"k","Value":"v"}]},
        "Snapshots":{"Snapshot":[{"SnapshotId":"s-1","SourceDiskId":"d-1","Available":true,
        "Progress":"100%"}]}}]}}"#;
    let page = page::<SnapshotGroup>(json);
    let group = &page.rows[0];
    assert_eq!(group.tags["k"], "v");
    assert_eq!(group.status, SnapshotStatus::Accomplished);
    assert_eq!(group.members[0].source, Some("d-1".parse().unwrap()));
}

#[test]
fn a_successful_deletion_lists_the_remaining_snapshots() {
    let json = r#"{"RequestId":"R","OperationProgressSet":{"OperationProgress":[
        {"OperationStatus":"Failed","ErrorCode":"SnapshotCreatedImage","ErrorMsg":"used",
         "RelatedItemSet":{"RelatedItem":[{"Name":"SnapshotId","Value":"s-2"}]}},
        {"OperationStatus":"Failed","ErrorCode":"",
         "RelatedItemSet":{"RelatedItem":[{"Name":"SnapshotId","Value":"s-3"}]}},
        {"OperationStatus":"Success","ErrorCode":"","RelatedItemSet":null}]}}"#;
    let remaining = read::<DeletedGroup>(json.as_bytes()).unwrap().remaining();
    assert_eq!(remaining.len(), 2);
    // Failed without a reason.
    assert_eq!(
        (remaining[1].snapshot.as_str(), remaining[1].code.as_str()),
        ("s-3", "Failed")
    );
    assert_eq!(
        (remaining[0].snapshot.as_str(), remaining[0].code.as_str()),
        ("s-2", "SnapshotCreatedImage")
    );
    let all = read::<DeletedGroup>(br#"{"RequestId":"R"}"#).unwrap();
    assert_eq!(all.remaining(), []);
}

fn flat(request: &impl serde::Serialize) -> String {
    let pairs = params(request)
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join(" ")
}

#[test]
fn unset_options_are_not_sent() {
    let mut request = ModifyDiskSpec {
        disk: "d-1".parse().unwrap(),
        category: Some(Category::CloudAuto),
        performance_level: None,
        provisioned_iops: None,
        dry_run: true,
    };
    assert_eq!(flat(&request), "DiskCategory=cloud_auto DiskId=d-1 DryRun=true");
    (request.category, request.dry_run) = (None, false);
    request.performance_level = Some(PerformanceLevel::Pl2);
    assert_eq!(flat(&request), "DiskId=d-1 PerformanceLevel=PL2");
}

#[test]
fn a_creation_has_all_its_parameters() {
    let token = ClientToken::derive("CreateDisk", []);
    let request = CreateDisk {
        zone: Some("z".parse().unwrap()),
        category: Category::CloudEssd,
        performance_level: Some(PerformanceLevel::Pl0),
        provisioned_iops: Some(7),
        bursting: true,
        multi_attach: true,
        resource_group: Some("rg".to_owned()),
        size: Gib(20),
        name: "n".to_owned(),
        snapshot: Some("s-1".parse().unwrap()),
        encrypted: true,
        kms_key: Some("k".to_owned()),
        tags: Tags::from([("b".to_owned(), "2".to_owned()), ("a".to_owned(), String::new())]),
        token: token.clone(),
    };
    let expected = format!(
        "BurstingEnabled=true ClientToken={token} DiskCategory=cloud_essd DiskName=n Encrypted=true KMSKeyId=k \
         MultiAttach=Enabled PerformanceLevel=PL0 ProvisionedIops=7 ResourceGroupId=rg Size=20 SnapshotId=s-1 \
         Tag.1.Key=a Tag.1.Value= Tag.2.Key=b Tag.2.Value=2 ZoneId=z"
    );
    assert_eq!(flat(&request), expected);
    let request = ResizeDisk {
        disk: "d-1".parse().unwrap(),
        size: Gib(30),
        mode: ResizeMode::Offline,
        token: token.clone(),
    };
    assert_eq!(
        flat(&request),
        format!("ClientToken={token} DiskId=d-1 NewSize=30 Type=offline")
    );
}

#[test]
fn lists_are_numbered_from_one() {
    let request = UntagResources {
        targets: TagTarget::Snapshots(vec!["s-1".parse().unwrap(), "s-2".parse().unwrap()]),
        keys: vec!["x".to_owned()],
    };
    let expected = "ResourceId.1=s-1 ResourceId.2=s-2 ResourceType=snapshot TagKey.1=x";
    assert_eq!(flat(&request), expected);
    let request = DescribeTasks::Disk("d-1".parse().unwrap());
    assert_eq!(flat(&request), "ResourceIds.1=d-1");
    let request = DescribeTasks::Ids(vec!["t-1".parse().unwrap(), "t-2".parse().unwrap()]);
    assert_eq!(flat(&request), "TaskIds=t-1,t-2");
}

#[test]
fn ids_are_a_json_array_even_if_empty() {
    let request = |ids| DescribeDisks {
        ids,
        ..DescribeDisks::default()
    };
    let (one, two) = ("d-1".parse().unwrap(), "d-2".parse().unwrap());
    assert_eq!(flat(&request(Some(vec![one, two]))), r#"DiskIds=["d-1","d-2"]"#);
    assert_eq!(flat(&request(Some(vec![]))), "DiskIds=[]");
    assert_eq!(flat(&request(None)), "");
}

#[test]
fn an_attribute_is_sent_if_it_is_false() {
    let request = ModifyDiskAttribute {
        disk: "d-1".parse().unwrap(),
        attribute: DiskAttribute::Bursting(false),
    };
    assert_eq!(flat(&request), "BurstingEnabled=false DiskId=d-1");
}

#[test]
fn a_task_is_parsed_with_and_without_its_time() {
    let json = r#"{"TaskSet":{"Task":[
        {"TaskId":"t-1","TaskAction":"ModifyDiskSpec","TaskStatus":"Processing",
         "ResourceId":"d-1","CreationTime":"2021-06-07T06:08:54Z"},
        {"TaskId":"t-2","TaskStatus":"Finished"}]}}"#;
    let page = page::<Task>(json);
    assert_eq!(page.rows[0].to_string(), "task t-1 of d-1 is Processing");
    assert_eq!(page.rows[1].status, TaskStatus::Finished);
    assert!(page.rows[0].created.is_some() && page.rows[1].created.is_none());
}

#[test]
fn an_out_of_stock_category_is_not_available() {
    let json = r#"{"AvailableZones":{"AvailableZone":[{"ZoneId":"cn-a","Status":"Available",
        "AvailableResources":{"AvailableResource":[{"Type":"DataDisk","SupportedResources":
        {"SupportedResource":[{"Value":"cloud_ssd","Status":"SoldOut","StatusCategory":"WithoutStock"},
        {"Value":"cloud_essd","Status":"Available","Min":20,"Max":65536}]}}]}}]}}"#;
    let zones = read::<DescribedStock>(json.as_bytes()).unwrap().available_zones;
    let available: Vec<bool> = zones[0].categories.iter().map(|s| s.available).collect();
    assert_eq!(available, [false, true]);
}
