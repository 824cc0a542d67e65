use std::os::unix::fs::symlink;
use std::time::Duration;

use super::*;

/// A procfs and a sysfs of files.
struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        world.write("proc/self/mountinfo", "");
        world.link("proc/self/ns/mnt", "mnt:[1]");
        fs::create_dir_all(world.path("sys/block/vdb/holders")).unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, name: &str, target: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    /// A process in a mount namespace with this table.
    fn process(&self, pid: u32, name: &str, namespace: u32, table: &str) {
        let dir = format!("proc/{pid}");
        self.write(&format!("{dir}/comm"), &format!("{name}\n"));
        self.write(&format!("{dir}/mountinfo"), table);
        self.link(&format!("{dir}/ns/mnt"), &format!("mnt:[{namespace}]"));
        self.link(&format!("{dir}/root"), "/");
        self.link(&format!("{dir}/cwd"), "/");
    }

    fn open(&self, pid: u32, file: &str, mount: u32) {
        self.link(&format!("proc/{pid}/fd/3"), file);
        self.write(
            &format!("proc/{pid}/fdinfo/3"),
            &format!("pos:\t0\nmnt_id:\t{mount}\n"),
        );
    }

    fn find(&self, point: Option<&str>) -> Vec<String> {
        let sought = Sought {
            number: DeviceNumber {
                major: 254,
                minor: 16,
            },
            node: "/dev/vdb".into(),
            partitions: Vec::new(),
            point: point.map(PathBuf::from),
        };
        let deadline = Deadline::after(Duration::from_secs(60));
        let (proc, sys) = (self.path("proc"), self.path("sys"));
        let found = find(&proc, &sys, &sought, deadline);
        found.iter().map(ToString::to_string).collect()
    }
}

const ROOT: &str = "20 1 0:30 / / rw - overlay overlay rw\n";
const VOLUME: &str = "20 1 0:30 / / rw - overlay overlay rw\n\
    31 20 254:16 / /target rw - ext4 /dev/vdb rw\n";

#[tokio::test]
async fn a_process_is_told_with_what_it_holds_and_where_it_runs() {
    let world = World::new();
    world.process(7, "idle", 1, VOLUME);
    world.process(8, "postgres", 1, VOLUME);
    world.open(8, "/target/base/1", 31);
    let id = "0123456789abcdef".repeat(4);
    world.write(
        "proc/8/cgroup",
        &format!("0::/kubepods.slice/pod1/cri-containerd-{id}.scope\n"),
    );
    assert_eq!(
        world.find(Some("/target")),
        ["process 8 (postgres, container 0123456789ab), which has /target/base/1 open"]
    );
}

#[tokio::test]
async fn a_working_directory_and_a_program_hold_too() {
    let world = World::new();
    world.process(8, "sh", 1, VOLUME);
    fs::remove_file(world.path("proc/8/cwd")).unwrap();
    world.link("proc/8/cwd", "/target/dir");
    world.process(9, "tool", 1, VOLUME);
    world.link("proc/9/exe", "/target/bin/tool");
    world.process(10, "near", 1, VOLUME);
    world.link("proc/10/exe", "/target-of-others/tool");
    assert_eq!(
        world.find(None),
        [
            "process 8 (sh), which works in /target/dir",
            "process 9 (tool), which runs /target/bin/tool"
        ]
    );
}

#[tokio::test]
async fn another_mount_namespace_is_told_by_its_first_process() {
    let world = World::new();
    world.process(7, "own", 1, VOLUME);
    for pid in [8, 9] {
        world.process(pid, "pause", 2, VOLUME);
    }
    world.process(10, "other", 3, ROOT);
    assert_eq!(
        world.find(None),
        ["the mount namespace of process 8 (pause), where it is mounted at /target"]
    );
}

#[tokio::test]
async fn a_namespace_that_is_hidden_is_known_by_the_ids_of_its_mounts() {
    let world = World::new();
    world.write("proc/self/mountinfo", VOLUME);
    let elsewhere = VOLUME.replace("20 1", "50 1").replace("31 20", "51 50");
    for (pid, table) in [(1, VOLUME), (8, &elsewhere), (9, &elsewhere)] {
        world.process(pid, "pause", 2, table);
        fs::remove_file(world.path(&format!("proc/{pid}/ns/mnt"))).unwrap();
    }
    assert_eq!(
        world.find(None),
        [
            "a mount at /target",
            "the mount namespace of process 8 (pause), where it is mounted at /target"
        ]
    );
}

/// The first process of a machine sees every mount that is shared, and blocks nothing.
#[tokio::test]
async fn who_certainly_blocks_comes_before_the_namespaces_that_show_it() {
    let world = World::new();
    world.process(1, "systemd", 2, VOLUME);
    world.process(8, "postgres", 1, VOLUME);
    world.open(8, "/target/base/1", 31);
    world.process(9, "sh", 3, VOLUME);
    world.open(9, "/target/log", 31);
    assert_eq!(
        world.find(Some("/target")),
        [
            "process 8 (postgres), which has /target/base/1 open",
            "process 9 (sh), which has /target/log open",
            "the mount namespace of process 1 (systemd), where it is mounted at /target"
        ]
    );
}

#[tokio::test]
async fn mounts_below_and_devices_on_top_are_told() {
    let world = World::new();
    world.write(
        "proc/self/mountinfo",
        &format!("{VOLUME}32 31 0:40 / /target/sub rw - tmpfs tmpfs rw\n"),
    );
    world.write("sys/block/vdb/holders/dm-0", "");
    world.write("sys/block/loop3/loop/backing_file", "/target/image\n");
    world.write("sys/block/loop4/loop/backing_file", "/else/image\n");
    world.write(
        "proc/swaps",
        "Filename\tType\tSize\n/target/swap file 4 0 -2\n",
    );
    assert_eq!(
        world.find(Some("/target")),
        [
            "device dm-0",
            "device loop3",
            "swap",
            "a mount at /target/sub"
        ]
    );
}

#[tokio::test]
async fn a_file_in_memory_is_looked_for_where_nothing_else_shows() {
    let world = World::new();
    world.process(8, "db", 1, VOLUME);
    world.write(
        "proc/8/maps",
        "7f00-7f10 rw-s 00000000 fe:10 12                         /target/data\n",
    );
    assert_eq!(
        world.find(None),
        ["process 8 (db), which has /target/data in its memory"]
    );
}

#[test]
fn a_long_list_is_cut_and_an_empty_one_is_told() {
    let many: Vec<_> = (0..11).map(|n| Holder::Device(format!("dm-{n}"))).collect();
    assert!(list(&many).ends_with("device dm-7; 3 more"));
    assert_eq!(list(&[]), "nobody that /proc shows");
}
