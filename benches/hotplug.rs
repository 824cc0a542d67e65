//! How long a disk that is plugged into a running machine waits until the node has found it, beside a
//! look every 500 ms. `cargo bench --bench hotplug`, or `make bench`. Needs QEMU and Debian's packages.
//!
//! The machine is a guest of QEMU, which emulates each instruction; it is that of `tests/guest`. Each
//! of the disks is plugged in while NodeStageVolume (raw block) waits for it. All times are the
//! guest's: "there" is the kernel's uevent `add` of the block device, as another who listens to the
//! kernel (`udevadm monitor`) has stamped it; "told" is what the kernel logs of the disk before that,
//! when it has yet to look for partitions; "heard" is what the node logs when the kernel's last word before
//! that reached it; "found" is what the node logs when it has checked that the
//! device is the disk. Nothing is asserted but that each is found.

use std::time::Duration;

use anyhow::Context;

use disk::{Kind, MIB};
use machine::Guest;
use node::block;

#[path = "../tests/common/mod.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "helpers of tests, which use the rest")]
mod common;
#[path = "../tests/guest/disk.rs"]
#[expect(dead_code, reason = "the suite of tests uses the rest")]
mod disk;
#[path = "../tests/guest/machine.rs"]
mod machine;
#[path = "../tests/guest/node.rs"]
#[expect(dead_code, reason = "the suite of tests uses the rest")]
mod node;
#[path = "../tests/guest/qmp.rs"]
mod qmp;
#[path = "../tests/guest/saved.rs"]
mod saved;
#[path = "../tests/guest/shell.rs"]
mod shell;

const DISKS: u64 = 100;

/// Disks before those: what runs for the first time, the emulator translates first.
const BEFORE: u64 = 5;

/// Disks after those, with one who looks every 500 ms beside the node: each look takes time that the emulated machine
/// has not got twice.
const POLLED: u64 = 30;

/// Writes what the kernel tells and when.
const LISTENER: &str = "
    (udevadm monitor --kernel --subsystem-match=block > /run/uevents 2>&1 &)
    until grep -q KERNEL /run/uevents; do sleep 0.1; done
";

/// Looks every 500 ms, and writes what is there and when.
const POLLER: &str = "
    (while :; do
        for file in /sys/block/vd*/serial; do
            [[ -e $file ]] && read -r serial < $file || [[ ${serial:-} ]] && echo \"$EPOCHREALTIME $serial\"
            serial=
        done
        sleep 0.5
    done > /run/polled 2> /dev/null &)
";

/// What all have written of one disk, and how their clocks stand to each other: the kernel's log and
/// uevents count from the start of the machine, the others by the calendar.
const COLLECT: &str = "
    for _ in 1 2 3 4 5; do
        before=$EPOCHREALTIME
        while read -r _ word now _; do [[ $word == at ]] && break; done < /proc/timer_list
        echo \"clock $before $now\"
    done
    echo \"mark $EPOCHREALTIME\" > /dev/kmsg
    dmesg | grep ' mark ' | tail -n 1 | sed 's/^/kmsg /'
    dmesg | grep 'vda.*logical blocks' | tail -n 1 | sed 's/^/told /'
    grep 'add .*/vda (block)' /run/uevents | tail -n 1 | sed 's/^/there /'
    sed -n '/a block device was/h; /device found.*SERIAL/{s/^/found /;p;g;s/^/heard /;p}' /run/node.log
    if [[ -e /run/polled ]]; then
        until grep -q SERIAL /run/polled; do sleep 0.1; done
        grep -m 1 SERIAL /run/polled | sed 's/^/polled /'
    fi
";

/// Milliseconds from one of two moments to the other.
#[derive(Debug, Default)]
struct Row(Vec<f64>);

impl Row {
    fn print(&mut self, name: &str) -> anyhow::Result<()> {
        self.0.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let index = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
            self.0.get(index).copied().context("nothing was measured")
        };
        println!(
            "{name:<46} {:>9.1} ms {:>9.1} ms {:>9.1} ms",
            at(50)?,
            at(99)?,
            at(100)?
        );
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> anyhow::Result<()> {
    let Some(guest) = Guest::fresh("the figures of hot-plugged disks").await else {
        return Ok(());
    };
    let level = "info,diskplugin::linux::device_changes=debug";
    let node = guest.node_with(level, "/run/node.log").await;
    guest.sh(LISTENER).await;
    let [mut told, mut there, mut heard, mut polled] = [(); 4].map(|()| Row::default());
    for index in 0..BEFORE + DISKS + POLLED {
        if index == BEFORE + DISKS {
            guest.sh(POLLER).await;
        }
        let disk = guest.disk(Kind::Virtio, &format!("bp1bench000000000{index:03}"), 16 * MIB);
        let volume = node.volume(&disk, block());
        let attach = async {
            // Out of step with who looks every 500 ms; the call is there before the disk.
            tokio::time::sleep(Duration::from_millis(300 + index * 37 % 500)).await;
            guest.attach(&disk).await
        };
        let (staged, attached) = tokio::join!(volume.stage(), attach);
        staged?;
        let text = guest.sh(&COLLECT.replace("SERIAL", &disk.serial)).await;
        let moments = Moments::read(&text).with_context(|| text.clone())?;
        match moments.polled {
            _ if index < BEFORE => {}
            Some(time) => polled.0.push(time - moments.there),
            None => {
                told.0.push(moments.found - moments.told);
                there.0.push(moments.found - moments.there);
                heard.0.push(moments.found - moments.heard);
            }
        }
        volume.unstage().await?;
        attached.detach().await;
    }
    let title = format!("{DISKS} disks, one after the other");
    println!("{title:<46} {:>12} {:>12} {:>12}", "median", "99 %", "most");
    there.print("there, found by the node")?;
    heard.print("heard of by the node, found by the node")?;
    told.print("told by the kernel's log, found by the node")?;
    polled.print("there, seen by a look every 500 ms")
}

/// When what was done, in milliseconds of the calendar.
#[derive(Debug)]
struct Moments {
    told: f64,
    there: f64,
    heard: f64,
    found: f64,
    polled: Option<f64>,
}

impl Moments {
    fn read(text: &str) -> anyhow::Result<Self> {
        let line = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
            lines.next().with_context(|| format!("no{name}"))
        };
        // The second time is read a moment after the first, which makes the start of the machine and with it "there"
        // too early. It never becomes too late, so the latest of several is the best.
        let mut start = f64::MIN;
        for clock in text.lines().filter_map(|line| line.strip_prefix("clock ")) {
            let (before, now) = clock.split_once(' ').context("two times were expected")?;
            start = start.max(before.parse::<f64>()? * 1e3 - now.parse::<f64>()? / 1e6);
        }
        let bracketed = |line: &str| -> anyhow::Result<f64> {
            let (_, rest) = line.split_once('[').context("no time")?;
            let (time, _) = rest.split_once(']').context("no time")?;
            Ok(time.trim().parse::<f64>()? * 1e3)
        };
        let mark = line("kmsg ")?;
        let (_, written) = mark.rsplit_once(' ').context("no mark")?;
        let log_start = written.parse::<f64>()? * 1e3 - bracketed(mark)?;
        let logged = |name: &str| -> anyhow::Result<f64> {
            let time = line(name)?.split(' ').next().context("no time")?;
            let time: jiff::Timestamp = time.parse()?;
            Ok(time.as_duration().as_secs_f64() * 1e3)
        };
        let polled = line("polled ").ok();
        let polled = polled.and_then(|line| line.split(' ').next());
        let polled = polled.map(str::parse::<f64>).transpose()?;
        Ok(Self {
            told: log_start + bracketed(line("told ")?)?,
            there: start + bracketed(line("there ")?)?,
            heard: logged("heard ")?,
            found: logged("found ")?,
            polled: polled.map(|seconds| seconds * 1e3),
        })
    }
}
