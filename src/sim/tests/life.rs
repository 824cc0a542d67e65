//! The life of a disk: asynchronous states, delays, what can go wrong later.

use serde_json::json;

use super::kit::{NODE, OTHER, Sandbox, essd, legacy, region};
use crate::sim::instance::NodeSpec;

#[test]
fn every_change_of_state_takes_its_time() {
    let mut sandbox = Sandbox::new(&[
        "--create-delay=2s",
        "--attach-delay=3s",
        "--detach-delay=4s",
    ]);
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
fn an_attachment_shows_only_once_it_is_there() {
    let mut sandbox = Sandbox::new(&["--attach-delay=3s"]);
    let disk = sandbox.create(essd());
    sandbox.attach(&disk, NODE);
    let on_node = || region().with("InstanceId", NODE);
    assert_eq!(sandbox.disks(on_node()).rows.len(), 0);
    sandbox.pass(3);
    assert_eq!(sandbox.disks(on_node()).rows.len(), 1);
}

#[test]
fn a_failing_attach_falls_back_to_available() {
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
    sandbox.world.release(&disk);
    assert_eq!(sandbox.status(&disk), "Available");
}

#[test]
fn a_created_disk_may_disappear() {
    let mut sandbox = Sandbox::new(&["--create-delay=2s"]);
    sandbox.configure(&json!({"faults": [{"action": "CreateDisk", "kind": "fails-later"}]}));
    let disk = sandbox.create(essd());
    assert_eq!(sandbox.status(&disk), "Creating");
    sandbox.pass(2);
    assert_eq!(sandbox.status(&disk), "gone");
}

#[test]
fn one_attach_at_a_time_unless_the_instance_is_tagged() {
    let mut sandbox = Sandbox::new(&["--attach-delay=3s"]);
    let (a, b) = (sandbox.create(essd()), sandbox.create(essd()));
    assert_eq!(sandbox.attach(&a, NODE), "ok");
    let refused = sandbox.attach(&b, NODE);
    assert!(
        refused == "403 InvalidOperation.Conflict"
            || refused == "400 OperationConflict.DisksAttachingParallellyExceed",
        "{refused}"
    );
    assert_eq!(sandbox.attach(&b, OTHER), "ok");
    let mut spec: NodeSpec = "i-tagged=cn-beijing-a".parse().unwrap();
    spec.tags
        .insert("supportConcurrencyAttach".to_owned(), "true".to_owned());
    sandbox.world.found_instance(spec);
    for _ in 0..3 {
        let disk = sandbox.create(essd());
        assert_eq!(sandbox.attach(&disk, "i-tagged"), "ok");
    }
}

#[test]
fn a_tagged_instance_lets_go_of_five_disks_at_a_time() {
    let mut sandbox = Sandbox::new(&["--detach-delay=3s"]);
    let mut spec: NodeSpec = "i-tagged=cn-beijing-a".parse().unwrap();
    spec.tags
        .insert("supportConcurrencyDetach".to_owned(), "true".to_owned());
    sandbox.world.found_instance(spec);
    let disks: Vec<String> = (0..6).map(|_| sandbox.create(essd())).collect();
    let mut attach = |disk: &String| sandbox.attach(disk, "i-tagged");
    assert!(disks.iter().all(|disk| attach(disk) == "ok"));
    let outcomes: Vec<String> = disks
        .iter()
        .map(|disk| sandbox.detach(disk, "i-tagged"))
        .collect();
    assert!(
        outcomes[..5].iter().all(|outcome| outcome == "ok"),
        "{outcomes:?}"
    );
    assert_ne!(outcomes[5], "ok");
}

#[test]
fn the_system_disk_takes_one_of_the_places() {
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
    assert_eq!(
        sandbox.attach(&disk, "i-none"),
        "404 InvalidInstanceId.NotFound"
    );
}

#[test]
fn an_instance_takes_only_what_its_type_takes() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(essd().with("DiskCategory", "cloud_essd_entry"));
    let refused = sandbox.attach(&disk, NODE);
    assert_eq!(refused, "403 InvalidInstanceType.NotSupportDiskCategory");
    let shared = sandbox.create(essd().with("MultiAttach", "Enabled"));
    let refused = sandbox.attach(&shared, NODE);
    assert_eq!(refused, "403 InvalidInstanceType.NvmeUnsupported");
}

#[test]
fn a_shared_disk_goes_to_sixteen_instances() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(essd().with("MultiAttach", "Enabled"));
    for n in 0..17 {
        let spec = format!("i-nvme{n}=cn-beijing-a=ecs.g8i.large");
        sandbox.world.found_instance(spec.parse().unwrap());
        let wanted = if n < 16 {
            "ok"
        } else {
            "403 DiskAttachedNumberExceeded"
        };
        assert_eq!(sandbox.attach(&disk, &format!("i-nvme{n}")), wanted);
    }
    assert_eq!(sandbox.detach(&disk, "i-nvme0"), "ok");
    assert_eq!(sandbox.status(&disk), "In_use");
}

#[test]
fn an_instance_takes_disks_only_when_it_is_ready() {
    let mut sandbox = Sandbox::new(&[]);
    sandbox.configure(&json!({"delays": {"power": "5s", "ready": "5s"}}));
    let disk = sandbox.create(essd());
    sandbox.world.switch_instance(NODE, false);
    assert_eq!(sandbox.attach(&disk, NODE), "400 IncorrectInstanceStatus");
    sandbox.pass(5);
    sandbox.world.switch_instance(NODE, true);
    sandbox.pass(5);
    // It runs, and yet is not ready.
    assert_eq!(sandbox.attach(&disk, NODE), "400 IncorrectInstanceStatus");
    sandbox.pass(5);
    assert_eq!(sandbox.attach(&disk, NODE), "ok");
}

#[test]
fn an_online_resize_needs_a_running_instance() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(essd());
    sandbox.attach(&disk, NODE);
    sandbox.world.switch_instance(NODE, false);
    let refused = sandbox.resize(&disk, 40, "online");
    assert_eq!(refused, "403 InvalidInstanceStatus.NotRunning");
    assert_eq!(sandbox.resize(&disk, 40, "offline"), "ok");
}

#[test]
fn a_resize_shows_late_and_blocks_the_next() {
    let mut sandbox = Sandbox::new(&["--resize-delay=5s"]);
    let disk = sandbox.create(essd());
    assert_eq!(sandbox.resize(&disk, 40, "offline"), "ok");
    assert_eq!(sandbox.world.disk(&disk).unwrap().size, 20);
    assert_eq!(
        sandbox.resize(&disk, 50, "offline"),
        "400 LastOrderProcessing"
    );
    sandbox.pass(5);
    assert_eq!(sandbox.world.disk(&disk).unwrap().size, 40);
}

#[test]
fn a_disk_only_grows_and_within_its_category() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(legacy());
    for size in [10, 20] {
        let refused = sandbox.resize(&disk, size, "offline");
        assert!(refused.starts_with("403 InvalidDiskSize"), "{refused}");
    }
    let refused = sandbox.resize(&disk, 32769, "offline");
    assert!(refused.contains("TooLarge") || refused.contains("ValueNotSupported"));
    assert_eq!(
        sandbox.resize(&disk, 40, "sideways"),
        "400 InvalidParam.Type"
    );
}

#[test]
fn disks_come_off_a_removed_instance_and_stay() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(essd());
    sandbox.attach(&disk, NODE);
    assert!(sandbox.world.remove_instance(NODE));
    assert_eq!(sandbox.status(&disk), "Available");
}

#[test]
fn a_missing_disk_is_deleted_or_not_found_by_switch() {
    let mut sandbox = Sandbox::new(&[]);
    assert_eq!(sandbox.delete("d-none"), "ok");
    let mut sandbox = Sandbox::new(&["--missing-is-error"]);
    assert_eq!(sandbox.delete("d-none"), "404 InvalidDiskId.NotFound");
}
