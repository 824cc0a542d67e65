//! `NodeGetVolumeStats`.

use super::Result;
use super::health::HealthReporter;
use super::observe::CallContext;
use super::request::StatsRequest;
use super::volume_stats::VolumeStats;
use crate::base::Deadline;

pub(super) const OPERATION: &str = "taking statistics";

impl HealthReporter {
    /// The usage and the health issues of the volume at a path. Returns within seconds, even if the
    /// device no longer responds.
    ///
    /// # Errors
    /// The volume is not at the path, or the state of the host cannot be read.
    pub async fn stats(&self, request: &StatsRequest, deadline: Deadline) -> Result<VolumeStats> {
        let volume = &self.staged.volume(&request.volume, OPERATION).await?;
        let call = CallContext::new(volume, OPERATION);
        let device = self.finder.lookup_device(call).await?;
        let mounts = self.observer.mounts(call).await?;
        let path = self.observer.find_path(&request.path, call).await?;
        let not_found = |reason| call.not_found(request.path.as_path(), reason);
        let Some(mount) = mounts.iter().rfind(|mount| mount.point == path) else {
            return Err(not_found(match device {
                Some(_) => "nothing is mounted there".to_owned(),
                None => "no device of this node has its serial".to_owned(),
            }));
        };
        let report = self.check_health(volume, device.as_ref(), mount, deadline);
        report.await?.ok_or_else(|| {
            let source = mount.source.display();
            not_found(format!("{source} is mounted there"))
        })
    }
}
