//! How disks are ill, and `DescribeDisksFullStatus`.

use serde::{Deserialize, Serialize};

use super::params::Params;
use super::reply::{Answer, Refusal, Reply};
use super::world::World;

/// Most disks that one call describes.
const MOST: usize = 100;

/// How one disk is ill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Ailment {
    /// `HealthStatus`, such as `Impaired`; none is `Ok`.
    pub health: Option<String>,
    /// An event that goes on, such as `Stalled`.
    pub event: Option<String>,
    /// The `LockReason` that `DescribeDisks` shows, such as `financial`.
    pub lock: Option<String>,
    /// The status is missing from its row in `DescribeDisks`, so that the row makes no sense.
    pub unreadable: bool,
}

/// How a disk is.
#[derive(Debug, Clone)]
pub(crate) struct HealthRow {
    pub(crate) disk: String,
    pub(crate) instance: String,
    pub(crate) status: &'static str,
    pub(crate) health: String,
    pub(crate) event: Option<String>,
    pub(crate) event_id: String,
}

impl World {
    pub(crate) fn describe_health(&mut self, params: &Params) -> Reply {
        params.required("RegionId")?;
        let ids = params.list("DiskId");
        if ids.len() > MOST {
            return Err(Refusal::new(403, "DiskIdLimitExceeded"));
        }
        let health = params.get("HealthStatus");
        let rows = self.disks.values().filter_map(|row| {
            let row = self.disk(&row.id)?;
            if !(ids.is_empty() || ids.contains(&row.id.as_str())) {
                return None;
            }
            let ailment = self.config.ailing.get(&row.id).cloned().unwrap_or_default();
            let shown = HealthRow {
                disk: row.id.clone(),
                instance: row
                    .shown()
                    .next()
                    .map_or(String::new(), |a| a.instance.clone()),
                status: row.status(),
                health: ailment.health.unwrap_or_else(|| "Ok".to_owned()),
                event: ailment.event,
                event_id: format!("e-{}", row.serial),
            };
            health
                .is_none_or(|health| health == shown.health)
                .then_some((row.id.clone(), shown))
        });
        let rows = rows.collect();
        self.page(params, 1..=100, rows).map(Answer::Health)
    }
}
