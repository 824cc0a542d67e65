//! Health of disks and `DescribeDisksFullStatus`.

use serde::{Deserialize, Serialize};

use super::page;
use super::params::Params;
use super::response::{ApiError, ApiResponse, ApiResult};
use super::world::World;

/// Maximum number of disks in one call.
const MAX: usize = 100;

/// The configured health of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct InjectedHealth {
    /// `HealthStatus`, such as `Impaired`; unset is `Ok`.
    pub health: Option<String>,
    /// The active event, such as `Stalled`.
    pub event: Option<String>,
    /// The `LockReason` in `DescribeDisks`, such as `financial`.
    pub lock: Option<String>,
    /// `DescribeDisks` omits the status, which makes the row unreadable.
    pub unreadable: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct HealthRow {
    pub(crate) disk: String,
    pub(crate) instance: String,
    pub(crate) status: &'static str,
    pub(crate) health: String,
    pub(crate) event: Option<String>,
    pub(crate) event_id: String,
}

pub(crate) fn describe_health(world: &mut World, params: &Params) -> ApiResult {
    params.required("RegionId")?;
    let ids = params.list("DiskId");
    if ids.len() > MAX {
        return Err(ApiError::new(403, "DiskIdLimitExceeded"));
    }
    let health = params.get("HealthStatus");
    let rows = world.disks.rows().values().filter_map(|row| {
        let row = world.disks.get(&row.id)?;
        if !(ids.is_empty() || ids.contains(&row.id.as_str())) {
            return None;
        }
        let ailment = world
            .config
            .disk_health
            .get(&row.id)
            .cloned()
            .unwrap_or_default();
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
    page::page(world, params, 1..=100, rows).map(ApiResponse::Health)
}
