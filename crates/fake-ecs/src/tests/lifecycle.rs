//! The lifecycle of a disk: asynchronous states, delays and late failures.

use serde_json::json;

use super::kit::{NODE, OTHER, Sandbox, essd, legacy, region};
use crate::instance::NodeSpec;

#[test]
fn state_changes_take_the_configured_time() {
    let mut sandbox = Sandbox::new(&["--create-delay=2s", "--attach-delay=3s", "--detach-delay=4s"]);
    let disk = sandbox.create(essd());
    assert_eq!(sandbox.status(&disk), "Creating");
    sandbox.pass(2);
    assert_eq!(sandbox.status(&disk), "Available");
    assert_eq!(sandbox.attach(&disk, NODE), "ok");
    assert_eq!(sandbox.status(&disk), "Attaching");
    sandbox.pass(2);
    assert_eq!(sandbox.status(&disk), "Attaching");
    sandbox.pass(1);
    assert_eq!(sandbox.status(&disk), "In_use");
    assert_eq!(sandbox.detach(&disk, NODE), "ok");
    assert_eq!(sandbox.status(&disk), "Detaching");
    sandbox.pass(4);
    assert_eq!(sandbox.status(&disk), "Available");
    assert_eq!(sandbox.delete(&disk), "ok");
    assert_eq!(sandbox.status(&disk), "gone");
}

#[test]
fn an_attachment_is_listed_only_once_attached() {
    let mut sandbox = Sandbox::new(&["--attach-delay=3s"]);
    let disk = sandbox.create(essd());
    sandbox.attach(&disk, NODE);
    let on_node = || region().with("InstanceId", NODE);
    assert_eq!(sandbox.disks(on_node()).rows.len(), 0);
    sandbox.pass(3);
    assert_eq!(sandbox.disks(on_node()).rows.len(), 1);
}

#[test]
fn a_failing_attach_reverts_to_available() {
    let mut sandbox = Sandbox::new(&["--attach-delay=3s"]);
    sandbox.configure(&json!({"faults": [{"action": "AttachDisk", "kind": "fails-later"}]}));
    let disk = sandbox.create(essd());
    assert_eq!(sandbox.attach(&disk, NODE), "ok");
    assert_eq!(sandbox.status(&disk), "Attaching");
    sandbox.pass(3);
    assert_eq!(sandbox.status(&disk), "Available");
    assert_eq!(sandbox.attach(&disk, NODE), "ok");
    sandbox.pass(3);
    assert_eq!(sandbox.status(&disk), "In_use");
}

#[test]
fn a_stuck_detach_lasts_until_it_is_released() {
    let mut sandbox = Sandbox::new(&[]);
    sandbox.configure(&json!({"faults": [{"action": "DetachDisk", "kind": "fails-later"}]}));
    let disk = sandbox.create(essd());
    sandbox.attach(&disk, NODE);
    sandbox.detach(&disk, NODE);
    sandbox.pass(100_000);
    assert_eq!(sandbox.status(&disk), "Detaching");
    crate::detach::release(&mut sandbox.world, &disk);
    assert_eq!(sandbox.status(&disk), "Available");
}

#[test]
fn a_forced_attach_moves_only_an_attached_regional_disk_from_another_zone() {
    let mut sandbox = Sandbox::new(&[]);
    let zonal = sandbox.create(essd());
    let regional = region().with("DiskCategory", "cloud_regional_disk_auto");
    let regional = sandbox.create(regional.with("Size", "20"));
    for (disk, instance, outcome, holder) in [
        (
            &zonal,
            OTHER,
            "400 InvalidParameterForce.DiskCategoryNotSupported",
            NODE,
        ),
        (&regional, OTHER, "403 InvalidInstance.ZoneConflict", NODE),
        (&regional, "i-far", "ok", "i-far"),
    ] {
        sandbox.attach(disk, NODE);
        assert_eq!(sandbox.status(disk), "In_use");
        assert_eq!(sandbox.force_attach(disk, instance), outcome);
        assert_eq!(sandbox.status(disk), "In_use");
        let row = sandbox.world.disks.existing(disk).unwrap();
        let holders: Vec<_> = row.attachments.iter().map(|held| held.instance.as_str()).collect();
        assert_eq!(holders, [holder], "{disk}, forced to {instance}");
    }
}

#[test]
fn a_created_disk_can_disappear() {
    let mut sandbox = Sandbox::new(&["--create-delay=2s"]);
    sandbox.configure(&json!({"faults": [{"action": "CreateDisk", "kind": "fails-later"}]}));
    let disk = sandbox.create(essd());
    assert_eq!(sandbox.status(&disk), "Creating");
    sandbox.pass(2);
    assert_eq!(sandbox.status(&disk), "gone");
}

#[test]
fn a_clock_that_is_set_back_delays_no_event_without_a_delay() {
    let mut sandbox = Sandbox::new(&[]);
    sandbox.pass(3600);
    let latest = sandbox.world.now;
    sandbox.set_back(1800);
    let disk = sandbox.create(essd());
    assert_eq!(sandbox.status(&disk), "Available");
    assert_eq!(sandbox.attach(&disk, NODE), "ok");
    assert_eq!(sandbox.status(&disk), "In_use");
    assert_eq!(sandbox.world.now, latest);
}

#[test]
fn one_attach_at_a_time_unless_the_instance_is_tagged() {
    let mut sandbox = Sandbox::new(&["--attach-delay=3s"]);
    let (a, b) = (sandbox.create(essd()), sandbox.create(essd()));
    assert_eq!(sandbox.attach(&a, NODE), "ok");
    let rejected = sandbox.attach(&b, NODE);
    assert!(
        rejected == "403 InvalidOperation.Conflict"
            || rejected == "400 OperationConflict.DisksAttachingParallellyExceed",
        "{rejected}"
    );
    assert_eq!(sandbox.attach(&b, OTHER), "ok");
    let mut spec: NodeSpec = "i-tagged=cn-beijing-a".parse().unwrap();
    spec.tags
        .insert("supportConcurrencyAttach".to_owned(), "true".to_owned());
    crate::instance_changes::add_running_instance(&mut sandbox.world, spec);
    for _ in 0..3 {
        let disk = sandbox.create(essd());
        assert_eq!(sandbox.attach(&disk, "i-tagged"), "ok");
    }
}

#[test]
fn a_tagged_instance_detaches_five_disks_at_a_time() {
    let mut sandbox = Sandbox::new(&["--detach-delay=3s"]);
    let mut spec: NodeSpec = "i-tagged=cn-beijing-a".parse().unwrap();
    spec.tags
        .insert("supportConcurrencyDetach".to_owned(), "true".to_owned());
    crate::instance_changes::add_running_instance(&mut sandbox.world, spec);
    let disks: Vec<String> = (0..6).map(|_| sandbox.create(essd())).collect();
    let mut attach = |disk: &String| sandbox.attach(disk, "i-tagged");
    assert!(disks.iter().all(|disk| attach(disk) == "ok"));
    let outcomes: Vec<String> = disks.iter().map(|disk| sandbox.detach(disk, "i-tagged")).collect();
    assert!(outcomes[..5].iter().all(|outcome| outcome == "ok"), "{outcomes:?}");
    assert_ne!(outcomes[5], "ok");
}

#[test]
fn the_system_disk_counts_towards_the_attach_limit() {
    let mut sandbox = Sandbox::new(&["--disk-quantity=3"]);
    for _ in 0..2 {
        let disk = sandbox.create(essd());
        assert_eq!(sandbox.attach(&disk, NODE), "ok");
    }
    let disk = sandbox.create(essd());
    assert_eq!(sandbox.attach(&disk, NODE), "403 InstanceDiskLimitExceeded");
}

#[test]
fn a_disk_attaches_only_in_its_zone() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(essd());
    assert_eq!(sandbox.attach(&disk, "i-far"), "403 ResourcesNotInSameZone");
    assert_eq!(sandbox.attach(&disk, "i-none"), "404 InvalidInstanceId.NotFound");
}

#[test]
fn an_instance_attaches_only_categories_of_its_type() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(essd().with("DiskCategory", "cloud_essd_entry"));
    let rejected = sandbox.attach(&disk, NODE);
    assert_eq!(rejected, "403 InvalidInstanceType.NotSupportDiskCategory");
    let shared = sandbox.create(essd().with("MultiAttach", "Enabled"));
    let rejected = sandbox.attach(&shared, NODE);
    assert_eq!(rejected, "403 InvalidInstanceType.NvmeUnsupported");
}

#[test]
fn a_shared_disk_attaches_to_sixteen_instances() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(essd().with("MultiAttach", "Enabled"));
    for n in 0..17 {
        let spec = format!("i-nvme{n}=cn-beijing-a=ecs.g8i.large");
        crate::instance_changes::add_running_instance(&mut sandbox.world, spec.parse().unwrap());
        let wanted = if n < 16 { "ok" } else { "403 DiskAttachedNumberExceeded" };
        assert_eq!(sandbox.attach(&disk, &format!("i-nvme{n}")), wanted);
    }
    assert_eq!(sandbox.detach(&disk, "i-nvme0"), "ok");
    assert_eq!(sandbox.status(&disk), "In_use");
}

#[test]
fn an_instance_attaches_disks_only_when_ready() {
    let mut sandbox = Sandbox::new(&[]);
    sandbox.configure(&json!({"delays": {"power": "5s", "ready": "5s"}}));
    let disk = sandbox.create(essd());
    crate::instance_changes::set_instance_power(&mut sandbox.world, NODE, false);
    assert_eq!(sandbox.attach(&disk, NODE), "400 IncorrectInstanceStatus");
    sandbox.pass(5);
    crate::instance_changes::set_instance_power(&mut sandbox.world, NODE, true);
    sandbox.pass(5);
    // It is Running, but not ready.
    assert_eq!(sandbox.attach(&disk, NODE), "400 IncorrectInstanceStatus");
    sandbox.pass(5);
    assert_eq!(sandbox.attach(&disk, NODE), "ok");
}

#[test]
fn an_online_resize_needs_a_running_instance() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(essd());
    sandbox.attach(&disk, NODE);
    crate::instance_changes::set_instance_power(&mut sandbox.world, NODE, false);
    let rejected = sandbox.resize(&disk, 40, "online");
    assert_eq!(rejected, "403 InvalidInstanceStatus.NotRunning");
    assert_eq!(sandbox.resize(&disk, 40, "offline"), "ok");
}

#[test]
fn a_resize_completes_late_and_blocks_the_next() {
    let mut sandbox = Sandbox::new(&["--resize-delay=5s"]);
    let disk = sandbox.create(essd());
    assert_eq!(sandbox.resize(&disk, 40, "offline"), "ok");
    assert_eq!(sandbox.world.disks.get(&disk).unwrap().size, 20);
    assert_eq!(sandbox.resize(&disk, 50, "offline"), "400 LastOrderProcessing");
    sandbox.pass(5);
    assert_eq!(sandbox.world.disks.get(&disk).unwrap().size, 40);
}

#[test]
fn a_disk_only_grows_and_within_its_category() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(legacy());
    for size in [10, 20] {
        let rejected = sandbox.resize(&disk, size, "offline");
        assert!(rejected.starts_with("403 InvalidDiskSize"), "{rejected}");
    }
    let rejected = sandbox.resize(&disk, 32769, "offline");
    assert!(rejected.contains("TooLarge") || rejected.contains("ValueNotSupported"));
    assert_eq!(sandbox.resize(&disk, 40, "sideways"), "400 InvalidParam.Type");
}

#[test]
fn disks_of_a_removed_instance_are_detached_and_kept() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(essd());
    sandbox.attach(&disk, NODE);
    assert!(crate::instance_changes::remove_instance(&mut sandbox.world, NODE));
    assert_eq!(sandbox.status(&disk), "Available");
}

#[test]
fn deleting_a_missing_disk_succeeds_or_fails_as_configured() {
    let mut sandbox = Sandbox::new(&[]);
    assert_eq!(sandbox.delete("d-none"), "ok");
    let mut sandbox = Sandbox::new(&["--missing-is-error"]);
    assert_eq!(sandbox.delete("d-none"), "404 InvalidDiskId.NotFound");
}
