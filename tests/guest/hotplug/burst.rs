//! Disks that are attached in parallel.

use std::collections::BTreeMap;

use crate::common::csi::filesystem;
use crate::disk::{Kind, MIB};
use crate::hotplug::started;

const COUNT: usize = 20;

/// Runs the futures concurrently; returns their results.
async fn all<T>(futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        match done.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[tokio::test]
async fn twenty_disks_attached_in_parallel_are_identified_correctly() {
    let Some((guest, node)) = started().await else { return };
    let disks: Vec<_> = (0..COUNT)
        .map(|number| {
            let kind = if number % 5 == 4 { Kind::Nvme } else { Kind::Virtio };
            // Descending and ascending numbers: neither a prefix nor an order identifies a disk.
            guest.disk(
                kind,
                &format!("bp1burst{:02}0000000{number:02}x", COUNT - number),
                32 * MIB,
            )
        })
        .collect();
    let volumes: Vec<_> = disks.iter().map(|disk| node.volume(disk, filesystem("ext4"))).collect();
    // kubelet stages the first disk before the last one is attached.
    let (attached, ()) = tokio::join!(all(disks.iter().map(|disk| guest.attach(disk))), async {
        all(volumes.iter().map(|volume| volume.publish_with_retries())).await;
    });
    for volume in &volumes {
        let text = format!("this is the content of {}", volume.id);
        guest.write(&volume.file(), &text).await;
    }
    let names = guest
        .sh("for f in /sys/block/vd*/serial; do n=${f#/sys/block/}; echo ${n%/serial} $(cat $f); done")
        .await;
    let names: BTreeMap<_, _> = names.lines().filter_map(|line| line.split_once(' ')).collect();
    let in_order = disks
        .iter()
        .filter(|disk| names.values().any(|serial| *serial == disk.serial));
    let in_order = in_order.map(|disk| disk.serial.as_str()).eq(names.values().copied());
    eprintln!("names in the order of attaching: {in_order}: {names:?}");
    all(volumes.iter().map(|volume| volume.unmount())).await;
    guest.has_no_mounts().await;
    all(attached.into_iter().map(|attached| attached.detach())).await;
    for disk in &disks {
        for other in &volumes {
            let text = format!("this is the content of {}", other.id);
            let expected = usize::from(other.id == disk.volume());
            let found = disk.count(&text).min(1);
            assert_eq!(found, expected, "{} on the disk {}", other.id, disk.serial);
        }
    }
}
