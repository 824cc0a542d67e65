//! A run of a row: a cloud, a controller, and all volumes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use diskplugin::base::{Clock, SystemClock};
use diskplugin::csi::proto::controller_client::ControllerClient;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::common::{Program, ZONE, socket, start_time};
use crate::control;
use crate::floor::floor;
use crate::outcome::Outcome;
use crate::remote::Remote;
use crate::row::Row;
use crate::sidecars::{Claim, Sidecars};
use crate::times::Times;

#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) driver: PathBuf,
    pub(crate) cloud: PathBuf,
    /// The file for the fake cloud's log of calls.
    pub(crate) calls: Option<PathBuf>,
}

impl Programs {
    /// Runs one row.
    pub(crate) async fn run(&self, row: &'static Row) -> anyhow::Result<Outcome> {
        let start_ms = self.starts(row).await?;
        let dir = tempfile::tempdir()?;
        let flags = row.flags(if self.calls.is_some() { 100_000 } else { 1 });
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let (fake, endpoint) = Program::fake_cloud(&self.cloud, dir.path(), &flags).await?;
        let nodes = control::ids(&endpoint, "instances").await?;
        ensure!(u32::try_from(nodes.len())? == row.nodes, "the nodes are missing");
        if let Some(quota) = row.quota().filter(|_| row.is_aligned) {
            tokio::time::sleep(quota.period - phase(quota.period)).await;
        }

        let mut controller = Program::controller(&self.driver, dir.path(), &endpoint)?;
        let socket = socket(dir.path(), "controller");
        let sidecars = Sidecars {
            service: Remote {
                provisioner: ControllerClient::new(controller.ready(&socket).await?),
                attacher: ControllerClient::new(controller.ready(&socket).await?),
            },
            times: Times::default(),
        };
        let phase = row.quota().map(|quota| phase(quota.period));
        let start = Instant::now();
        let completed = all(row, &sidecars, &nodes, start + row.limit()).await?;
        let time = start.elapsed();

        let rss_kib = controller.memory_kib("VmHWM")?;
        let cpu = controller.cpu()?;
        let cloud_cpu = fake.cpu()?;
        let left = control::ids(&endpoint, "disks").await?.len();
        let calls = control::counts(&endpoint).await?;
        if let Some(file) = &self.calls {
            std::fs::write(file, control::get(&endpoint, "calls").await?.to_string())?;
        }
        if completed == row.volumes {
            controller.stop().await.context("the controller")?;
        }
        fake.stop().await.context("the fake cloud")?;
        let (rpcs, failures) = sidecars.times.take();
        Ok(Outcome {
            row: row.name,
            about: row.about(),
            volumes: row.volumes,
            completed,
            left,
            seconds: time.as_secs_f64(),
            floor_seconds: floor(row, phase.unwrap_or_default()).as_secs_f64(),
            phase_seconds: phase.map(|phase| phase.as_secs_f64()),
            calls,
            rpcs,
            failures,
            rss_kib,
            cpu_seconds: cpu.as_secs_f64(),
            cloud_cpu_seconds: cloud_cpu.as_secs_f64(),
            start_ms,
            required: row.required,
        })
    }

    /// The median time from the start of the controller to its first `Probe` with ready.
    async fn starts(&self, row: &Row) -> anyhow::Result<Option<f64>> {
        if row.starts == 0 {
            return Ok(None);
        }
        let dir = tempfile::tempdir()?;
        let (fake, endpoint) = Program::fake_cloud(&self.cloud, dir.path(), &[]).await?;
        let median = start_time(&self.driver, &endpoint, row.starts).await?;
        fake.stop().await?;
        Ok(Some(median.as_secs_f64() * 1000.0))
    }
}

/// Runs the lifecycles of all volumes with the row's parallelism, on the nodes in turn. Returns the number of volumes
/// that are deleted before the timeout.
async fn all(row: &Row, sidecars: &Sidecars<Remote>, nodes: &[String], limit: Instant) -> anyhow::Result<u32> {
    let slots = Arc::new(Semaphore::new(usize::try_from(row.parallel)?));
    let mut lives = JoinSet::new();
    for (number, node) in (0..row.volumes).zip(nodes.iter().cycle()) {
        let (slots, sidecars, node) = (Arc::clone(&slots), sidecars.clone(), node.clone());
        lives.spawn(async move {
            let _slot = slots.acquire().await?;
            let claim = Claim {
                name: format!("pvc-{number}"),
                category: "cloud_essd",
                zone: ZONE.to_owned(),
            };
            sidecars.live(&claim, &node, Duration::ZERO).await;
            anyhow::Ok(())
        });
    }
    let mut completed = 0;
    while let Ok(Some(outcome)) = timeout_at(limit, lives.join_next()).await {
        outcome??;
        completed += 1;
    }
    Ok(completed)
}

/// The time since the beginning of the current window.
fn phase(window: Duration) -> Duration {
    let window = i128::try_from(window.as_nanos()).unwrap_or(i128::MAX).max(1);
    let nanos = SystemClock.now().as_nanosecond().rem_euclid(window);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
}
