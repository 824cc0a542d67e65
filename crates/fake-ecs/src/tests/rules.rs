//! Tokens, sizes, stock, quotas, permissions and faults.

use serde_json::json;

use super::kit::{NODE, Sandbox, essd, region};
use crate::action::Action;
use crate::fault::ResponseFault;
use crate::params::Params;
use crate::response::ApiResponse;

#[test]
fn the_same_token_and_request_give_the_same_disk() {
    let mut sandbox = Sandbox::new(&[]);
    let request = || essd().with("ClientToken", "t");
    let first = sandbox.create(request());
    sandbox.pass(3600);
    assert_eq!(sandbox.create(request()), first);
    assert_eq!(sandbox.disks(region()).rows.len(), 1);
}

#[test]
fn the_same_token_with_another_request_is_a_mismatch() {
    let mut sandbox = Sandbox::new(&[]);
    let tag = |n: u32, key: &str| (format!("Tag.{n}.Key"), key.to_owned());
    let request = |tags: [(String, String); 2]| {
        let params = essd().with("ClientToken", "t");
        tags.iter()
            .fold(params, |params, (name, value)| params.with(name, value))
    };
    sandbox.create(request([tag(1, "a"), tag(2, "b")]));
    let mismatch = "400 IdempotentParameterMismatch";
    let swapped = request([tag(1, "b"), tag(2, "a")]);
    assert_eq!(sandbox.outcome(Action::CreateDisk, swapped), mismatch);
    let larger = request([tag(1, "a"), tag(2, "b")]).with("Size", "30");
    assert_eq!(sandbox.outcome(Action::CreateDisk, larger), mismatch);
}

#[test]
fn a_client_token_expires() {
    let mut sandbox = Sandbox::new(&[]);
    let request = || essd().with("ClientToken", "t");
    let first = sandbox.create(request());
    sandbox.pass(24 * 3600);
    assert_ne!(sandbox.create(request()), first);
}

#[test]
fn a_repeated_call_can_find_the_first_in_progress() {
    let mut sandbox = Sandbox::new(&[]);
    sandbox.configure(&json!({"rules": {"token_in_flight": "5s"}}));
    let request = || essd().with("ClientToken", "t");
    let first = sandbox.create(request());
    let busy = sandbox.outcome(Action::CreateDisk, request());
    assert_eq!(busy, "403 LastTokenProcessing");
    sandbox.pass(5);
    assert_eq!(sandbox.create(request()), first);
}

#[test]
fn a_failed_create_can_record_its_token() {
    for (percent, again) in [(0, "ok"), (100, "400 IdempotentParameterMismatch")] {
        let mut sandbox = Sandbox::new(&[]);
        sandbox.configure(&json!({"rules": {"token_burn_percent": percent}}));
        let request = |size: &str| essd().with("ClientToken", "t").with("Size", size);
        assert_ne!(sandbox.outcome(Action::CreateDisk, request("1")), "ok");
        assert_eq!(sandbox.outcome(Action::CreateDisk, request("20")), again);
    }
}

#[test]
fn a_size_out_of_range_is_rejected() {
    let mut sandbox = Sandbox::new(&[]);
    sandbox.configure(&json!({"rules": {"alternatives": "first"}}));
    for (category, level, size, wanted) in [
        ("cloud_essd", "PL1", "19", "400 InvalidDiskSize.NotSupported"),
        ("cloud_essd", "PL0", "1", "ok"),
        (
            "cloud_essd",
            "PL2",
            "460",
            "403 OperationDenied.PerformanceLevelNotMatch",
        ),
        ("cloud_essd", "PL2", "461", "ok"),
        ("cloud_essd", "PL9", "461", "400 InvalidPerformanceLevel.Malformed"),
        ("cloud_efficiency", "", "32769", "400 InvalidDiskSize.NotSupported"),
        ("cloud_gold", "", "20", "400 InvalidDiskCategory.NotSupported"),
        ("cloud_ssd", "", "", "400 MissingParameter"),
    ] {
        let params = essd()
            .with("DiskCategory", category)
            .with("PerformanceLevel", level)
            .with("Size", size);
        let outcome = sandbox.outcome(Action::CreateDisk, params);
        assert_eq!(outcome, wanted, "{category} {level} {size}");
    }
}

#[test]
fn out_of_stock_disks_cannot_be_created_and_are_reported_unavailable() {
    let mut sandbox = Sandbox::new(&["--out-of-stock=cn-beijing-a/cloud_essd"]);
    sandbox.configure(&json!({"rules": {"alternatives": "first"}}));
    let rejected = sandbox.outcome(Action::CreateDisk, essd());
    assert_eq!(rejected, "400 InvalidDataDiskCategory.NotSupported");
    let elsewhere = essd().with("ZoneId", "cn-beijing-b");
    assert_eq!(sandbox.outcome(Action::CreateDisk, elsewhere), "ok");
    let query = region().with("DestinationResource", "DataDisk");
    let Ok(ApiResponse::Stock(zones)) = sandbox.call(Action::DescribeAvailableResource, query) else {
        panic!("no stock");
    };
    let offers = zones.iter().find(|zone| zone.zone == "cn-beijing-a").unwrap();
    let essd = offers.offers.iter().find(|o| o.category == "cloud_essd");
    assert!(!essd.unwrap().available);
}

#[test]
fn quotas_and_an_empty_account_reject_disks() {
    let mut sandbox = Sandbox::new(&[]);
    sandbox.create(essd());
    for (limits, wanted) in [
        (json!({"zone_category_gib": 39}), "400 QuotaExceed.DiskCapacity"),
        (json!({"total_gib": 39}), "403 QuotaExceeded.PostpaidDataDiskCapacity"),
        (json!({"no_balance": true}), "403 InvalidAccountStatus.NotEnoughBalance"),
        (json!({"total_gib": 40}), "ok"),
    ] {
        sandbox.configure(&json!({"limits": null}));
        sandbox.configure(&json!({"limits": limits}));
        assert_eq!(sandbox.outcome(Action::CreateDisk, essd()), wanted);
    }
}

#[test]
fn without_permission_writes_are_rejected_and_lists_are_empty() {
    let mut sandbox = Sandbox::new(&[]);
    sandbox.create(essd());
    sandbox.configure(&json!({"denied": ["CreateDisk", "DescribeDisks"]}));
    let rejected = sandbox.outcome(Action::CreateDisk, essd());
    assert_eq!(rejected, "403 Forbidden.RAM");
    assert_eq!(sandbox.disks(region()).rows.len(), 0);
    let dry_run = || region().with("DryRun", "true");
    let rejected = sandbox.outcome(Action::DescribeDisks, dry_run());
    assert_eq!(rejected, "403 Forbidden.RAM");
    sandbox.configure(&json!({"denied": []}));
    let accepted = sandbox.outcome(Action::DescribeDisks, dry_run());
    assert_eq!(accepted, "400 DryRunOperation");
}

#[test]
fn a_response_lost_after_the_effect_leaves_the_disk() {
    let mut sandbox = Sandbox::new(&[]);
    sandbox.configure(&json!({"faults": [
        {"action": "CreateDisk", "kind": "reset-before"},
        {"action": "CreateDisk", "from": 2, "kind": "reset-after"},
    ]}));
    for (response_fault, disks) in [(ResponseFault::Reset, 0), (ResponseFault::Reset, 1)] {
        let call = crate::call::ApiCall {
            action: Action::CreateDisk,
            params: essd(),
            via: crate::log::Via::V1,
            nonce: None,
        };
        let now = sandbox.world.now;
        let admission = crate::dispatch::admit(&mut sandbox.world, now, &call);
        let served = crate::dispatch::serve(&mut sandbox.world, now, &call, admission);
        assert_eq!(served.response_fault, Some(response_fault));
        assert_eq!(sandbox.disks(region()).rows.len(), disks);
    }
}

#[test]
fn tags_are_set_on_all_resources_or_on_none() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(essd());
    let request = |second: &str| {
        region()
            .with("ResourceType", "disk")
            .with("ResourceId.1", disk.as_str())
            .with("ResourceId.2", second)
            .with("Tag.1.Key", "k")
            .with("Tag.1.Value", "v")
    };
    let rejected = sandbox.outcome(Action::TagResources, request("d-none"));
    assert_eq!(rejected, "404 InvalidResourceId.NotFound");
    let tagged = || region().with("Tag.1.Key", "k").with("Tag.1.Value", "v");
    assert_eq!(sandbox.disks(tagged()).rows.len(), 0);
    assert_eq!(sandbox.outcome(Action::TagResources, request("")), "ok");
    assert_eq!(sandbox.disks(tagged()).rows.len(), 1);
}

#[test]
fn snapshots_and_instances_are_tagged_and_untagged() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(essd());
    sandbox.attach(&disk, NODE);
    let snapshot = sandbox.snapshot(&disk);
    for (kind, id) in [("snapshot", snapshot.as_str()), ("instance", NODE)] {
        let resource = |kind: &str| region().with("ResourceType", kind).with("ResourceId.1", id);
        let tag = resource(kind).with("Tag.1.Key", "k").with("Tag.1.Value", "v");
        let untag = resource(kind).with("TagKey.1", "k");
        assert_eq!(sandbox.outcome(Action::TagResources, tag), "ok");
        let tags = |sandbox: &Sandbox| match kind {
            "snapshot" => sandbox.world.snapshots.get(id).unwrap().tags.clone(),
            _ => sandbox.world.instances[id].tags.clone(),
        };
        assert_eq!(tags(&sandbox)["k"], "v");
        assert_eq!(sandbox.outcome(Action::UntagResources, untag), "ok");
        assert!(!tags(&sandbox).contains_key("k"));
        let wrong = resource("image").with("TagKey.1", "k");
        let rejected = sandbox.outcome(Action::UntagResources, wrong);
        assert_eq!(rejected, "404 InvalidResourceType.NotFound");
    }
}

#[test]
fn instances_and_their_types_are_listed() {
    let mut sandbox = Sandbox::new(&[]);
    let query = region().with("InstanceIds", r#"["i-one","i-none"]"#);
    let Ok(ApiResponse::Instances(page)) = sandbox.call(Action::DescribeInstances, query) else {
        panic!("no instances");
    };
    assert_eq!(page.rows.len(), 1);
    let query = Params::default().with("InstanceTypes.1", "ecs.g6.large");
    let Ok(ApiResponse::Types(types)) = sandbox.call(Action::DescribeInstanceTypes, query) else {
        panic!("no types");
    };
    assert_eq!(types[0].disk_quantity, 17);
}

#[test]
fn an_empty_level_or_category_is_invalid() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(essd());
    for (name, code) in [
        ("PerformanceLevel", "400 InvalidPerformanceLevel.Malformed"),
        ("DiskCategory", "400 InvalidDiskCategory.ValueNotSupported"),
    ] {
        let params = Params::default().with("DiskId", &disk).with(name, "");
        assert_eq!(sandbox.outcome(Action::ModifyDiskSpec, params), code);
    }
}
