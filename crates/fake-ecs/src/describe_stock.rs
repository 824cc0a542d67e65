//! `DescribeAvailableResource`.

use super::api_error::ApiError;
use super::distribution::before;
use super::instance_type::InstanceTypeSpec;
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::size;
use super::stock::{CategoryAvailability, ZoneAvailability, is_out_of_stock, place};
use super::world::World;

pub(crate) fn describe_stock(world: &mut World, params: &Params) -> ApiResult {
    if params.required("RegionId")? != world.region {
        return Err(ApiError::new(404, "Invalid.RegionId"));
    }
    if params.required("DestinationResource")? != "DataDisk" {
        return Err(ApiError::new(404, "Invalid.DestinationResource"));
    }
    if !matches!(params.get("ResourceType"), None | Some("disk" | "instance")) {
        return Err(ApiError::new(404, "Invalid.ResourceType"));
    }
    let zone = params.get("ZoneId");
    let category = params.get("DataDiskCategory");
    let machine = params.get("InstanceType").map(InstanceTypeSpec::named);
    let lags = world.config.rules.hide_stockouts;
    let out_of_stock = world.stock.at(
        before(world.now, world.config.rules.stock_lag),
        &world.config.out_of_stock,
    );
    let region = [String::new()];
    let (zones, categories): (&[String], &[&'static str]) = match params.get("Scope") {
        None => (&world.zones, &size::CATEGORIES),
        Some("region") => (&region, &[size::REGIONAL]),
        Some(_) => return Err(ApiError::new(403, "InvalidParameter.Scope")),
    };
    let zones = zones
        .iter()
        .filter(|z| zone.is_none_or(|zone| z.is_empty() || *z == zone));
    let offers = zones.map(|zone| ZoneAvailability {
        zone: zone.clone(),
        offers: categories
            .iter()
            .copied()
            .filter(|c| category.is_none_or(|category| *c == category))
            .filter(|c| machine.as_ref().is_none_or(|machine| machine.supports(c)))
            .map(|category| CategoryAvailability {
                category,
                available: lags || !is_out_of_stock(out_of_stock, place(zone), Some(category)),
                sizes: size::sizes(category, None).unwrap_or(0..=0),
            })
            .collect(),
    });
    Ok(ApiResponse::Stock(offers.collect()))
}
