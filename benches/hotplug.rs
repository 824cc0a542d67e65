//! The time from the hot-plug of a disk until the node has found it, compared with a search every 500 ms. `cargo bench
//! --bench hotplug`, or `make bench`. Requires QEMU and Debian packages.
//!
//! The machine is the QEMU guest of `tests/guest`, which emulates each instruction. Each disk is attached while
//! NodeStageVolume (raw block) waits for it. All times are those of the guest: "added" is the kernel's uevent `add` of
//! the block device, as stamped by `udevadm monitor`; "logged" is the kernel's log line about the disk, before it reads
//! the partitions; "notified" is the log line of the node about the last event of the kernel before it found the disk;
//! "found" is the log line of the node after the check of the serial.

use std::time::Duration;

use anyhow::Context;

use common::request::block;
use disk::{Kind, MIB};
use machine::Guest;

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

/// Disks before those, because the emulator translates code at its first execution.
const WARM_UP: u64 = 5;

/// Disks after those, with a search every 500 ms, which would slow down the node in the other measurement.
const POLLED: u64 = 30;

/// Records the kernel's uevents with their times.
const LISTENER: &str = "
    (udevadm monitor --kernel --subsystem-match=block > /run/uevents 2>&1 &)
    until grep -q KERNEL /run/uevents; do sleep 0.1; done
";

/// Searches every 500 ms, and records the serials with the time.
const POLLER: &str = "
    (while :; do
        for file in /sys/block/vd*/serial; do
            [[ -e $file ]] && read -r serial < $file || [[ ${serial:-} ]] && echo \"$EPOCHREALTIME $serial\"
            serial=
        done
        sleep 0.5
    done > /run/polled 2> /dev/null &)
";

/// The records of one disk, and the offset of their clocks: the kernel's log and uevents use the time since the boot,
/// the others wall time.
const COLLECT: &str = "
    for _ in 1 2 3 4 5; do
        before=$EPOCHREALTIME
        while read -r _ word now _; do [[ $word == at ]] && break; done < /proc/timer_list
        echo \"clock $before $now\"
    done
    echo \"mark $EPOCHREALTIME\" > /dev/kmsg
    dmesg | grep ' mark ' | tail -n 1 | sed 's/^/kmsg /'
    dmesg | grep 'vda.*logical blocks' | tail -n 1 | sed 's/^/logged /'
    grep 'add .*/vda (block)' /run/uevents | tail -n 1 | sed 's/^/added /'
    sed -n '/a block device was/h; /device found.*SERIAL/{s/^/found /;p;g;s/^/notified /;p}' /run/node.log
    if [[ -e /run/polled ]]; then
        until grep -q SERIAL /run/polled; do sleep 0.1; done
        grep -m 1 SERIAL /run/polled | sed 's/^/polled /'
    fi
";

/// Milliseconds between two times.
#[derive(Debug, Default)]
struct Row(Vec<f64>);

impl Row {
    fn print(&mut self, name: &str) -> anyhow::Result<()> {
        self.0.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let index = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
            self.0.get(index).copied().context("no measurement")
        };
        let (median, high, most) = (at(50)?, at(99)?, at(100)?);
        println!("{name:<46} {median:>9.1} ms {high:>9.1} ms {most:>9.1} ms");
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> anyhow::Result<()> {
    let Some(guest) = Guest::fresh().await else {
        return Ok(());
    };
    let level = "info,diskplugin::linux::device_changes=debug";
    let node = guest.node_with(level, "/run/node.log").await;
    guest.sh(LISTENER).await;
    let [mut logged, mut added, mut notified, mut polled] = [(); 4].map(|()| Row::default());
    for index in 0..WARM_UP + DISKS + POLLED {
        if index == WARM_UP + DISKS {
            guest.sh(POLLER).await;
        }
        let disk = guest.disk(Kind::Virtio, &format!("bp1bench000000000{index:03}"), 16 * MIB);
        let volume = node.volume(&disk, block());
        let attach = async {
            // Not synchronized with the search; the call is made before the attach.
            tokio::time::sleep(Duration::from_millis(300 + index * 37 % 500)).await;
            guest.attach(&disk).await
        };
        let (staged, attached) = tokio::join!(volume.stage(), attach);
        staged?;
        let text = guest.sh(&COLLECT.replace("SERIAL", &disk.serial)).await;
        let moments = Moments::read(&text).with_context(|| text.clone())?;
        match moments.polled {
            _ if index < WARM_UP => {}
            Some(time) => polled.0.push(time - moments.added),
            None => {
                logged.0.push(moments.found - moments.logged);
                added.0.push(moments.found - moments.added);
                notified.0.push(moments.found - moments.notified);
            }
        }
        volume.unstage().await?;
        attached.detach().await;
    }
    let title = format!("{DISKS} disks, one after the other");
    println!("{title:<46} {:>12} {:>12} {:>12}", "median", "99 %", "most");
    added.print("from the uevent until found by the node")?;
    notified.print("from the notification until found by the node")?;
    logged.print("from the kernel's log until found by the node")?;
    polled.print("from the uevent until found by the search")
}

/// Times in milliseconds of wall time.
#[derive(Debug)]
struct Moments {
    logged: f64,
    added: f64,
    notified: f64,
    found: f64,
    polled: Option<f64>,
}

impl Moments {
    fn read(text: &str) -> anyhow::Result<Self> {
        let line = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
            lines.next().with_context(|| format!("no{name}"))
        };
        // The second time is read after the first one, which makes the boot time and with it "added" too early, never
        // too late. The latest of several is the best.
        let mut start = f64::MIN;
        for clock in text.lines().filter_map(|line| line.strip_prefix("clock ")) {
            let (before, now) = clock.split_once(' ').context("not two times")?;
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
        let of_node = |name: &str| -> anyhow::Result<f64> {
            let time = line(name)?.split(' ').next().context("no time")?;
            let time: jiff::Timestamp = time.parse()?;
            Ok(time.as_duration().as_secs_f64() * 1e3)
        };
        let polled = line("polled ").ok();
        let polled = polled.and_then(|line| line.split(' ').next());
        let polled = polled.map(str::parse::<f64>).transpose()?;
        Ok(Self {
            logged: log_start + bracketed(line("logged ")?)?,
            added: start + bracketed(line("added ")?)?,
            notified: of_node("notified ")?,
            found: of_node("found ")?,
            polled: polled.map(|seconds| seconds * 1e3),
        })
    }
}
