//! `DescribeDisksFullStatus`.

use super::api_error::ApiError;
use super::health::HealthRow;
use super::page;
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::world::World;

/// Maximum number of disks in one call.
const MAX: usize = 100;

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
        let injected = world.config.disk_health.get(&row.id).cloned().unwrap_or_default();
        let shown = HealthRow {
            disk: row.id.clone(),
            instance: row.shown().next().map_or(String::new(), |a| a.instance.clone()),
            status: row.status(),
            health: injected.health.unwrap_or_else(|| "Ok".to_owned()),
            event: injected.event,
            event_id: format!("e-{}", row.serial),
        };
        health
            .is_none_or(|health| health == shown.health)
            .then_some((row.id.clone(), shown))
    });
    let rows = rows.collect();
    page::page(world, params, 1..=100, rows).map(ApiResponse::Health)
}
