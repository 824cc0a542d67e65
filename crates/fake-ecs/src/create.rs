//! `CreateDisk`.

use super::action::Action;
use super::api_error::ApiError;
use super::client_token;
use super::disk::{DiskRow, Phase};
use super::encryption;
use super::event_queue::Event;
use super::name;
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::size;
use super::stock;
use super::tag;
use super::world::World;

/// The resource group of resources that name none.
const DEFAULT_GROUP: &str = "rg-default";

pub(crate) fn create_disk(world: &mut World, params: &Params, fails_later: bool) -> ApiResult {
    params.required("RegionId")?;
    if params.get("InstanceId").is_some() {
        // That would create a subscription disk.
        return Err(ApiError::new(403, "InvalidPayMethod"));
    }
    client_token::once(world, Action::CreateDisk, params, |world| {
        create_disk_once(world, params, fails_later)
    })
}

fn create_disk_once(world: &mut World, params: &Params, fails_later: bool) -> ApiResult {
    let (mut row, size) = requested(params)?;
    row.name = params.get("DiskName").unwrap_or_default().to_owned();
    name::check(&row.name, "InvalidDiskName.Malformed")?;
    row.tags = params.tags()?;
    tag::check_count(&row.tags)?;
    check_zone_and_stock(world, params, &row)?;
    let key = row.kms_key.take();
    (row.encrypted, row.kms_key) = encryption::encryption(&world.config.keys, row.encrypted, key)?;
    row.size = resolve_size(world, params, &row, size)?;
    check_performance(&row)?;
    world
        .config
        .limits
        .check(&world.disks, &row.zone, &row.category, row.size)?;

    row.serial = world.rng.body();
    row.id = format!("d-{}", row.serial);
    row.snapshot = params.get("SnapshotId").map(str::to_owned);
    row.description = params.get("Description").unwrap_or_default().to_owned();
    // Every resource is in a group, by default in this one.
    row.resource_group = Some(params.get("ResourceGroupId").unwrap_or(DEFAULT_GROUP).to_owned());
    row.created = world.now;
    let load = world.config.delays.load.draw(&mut world.rng);
    row.loading = row.snapshot.is_some() && !load.is_zero();
    let (id, loading) = (row.id.clone(), row.loading);
    world.disks.insert(world.retention(), row);
    let create = world.config.delays.create.draw(&mut world.rng);
    let disk = id.clone();
    if loading {
        world.schedule(create + load, Event::Loaded { disk: disk.clone() });
    }
    let due = if fails_later {
        Event::Vanished { disk }
    } else {
        Event::Created { disk }
    };
    world.schedule(create, due);
    Ok(ApiResponse::Disk(id))
}

fn check_zone_and_stock(world: &mut World, params: &Params, row: &DiskRow) -> Result<(), ApiError> {
    if params.get("RegionId") != Some(world.region.as_str()) {
        return Err(ApiError::new(404, "InvalidRegionId.NotFound"));
    }
    let regional = row.zone.is_empty();
    if !regional && !world.zones.contains(&row.zone) {
        return Err(ApiError::new(404, "InvalidZoneId.NotFound"));
    }
    if !regional && stock::is_out_of_stock(&world.config.out_of_stock, &row.zone, None) {
        return Err(world.documented_error(&[(403, "Zone.NotOnSale"), (403, "OperationDenied.NoStock")]));
    }
    let place = stock::place(&row.zone);
    if stock::is_out_of_stock(&world.config.out_of_stock, place, Some(&row.category)) {
        return Err(world.documented_error(&[
            (400, "InvalidDataDiskCategory.NotSupported"),
            (403, "InvalidDataDiskCategory.ValueNotSupported"),
            (403, "OperationDenied.NoStock"),
        ]));
    }
    if row.level.is_some() && stock::is_out_of_stock(&world.config.out_of_stock, place, row.level.as_deref()) {
        let code = "InvalidPerformanceLevel.ValueNotSupported";
        return Err(ApiError::new(400, code));
    }
    if row.multi_attach && stock::is_out_of_stock(&world.config.out_of_stock, place, Some(stock::MULTI_ATTACH)) {
        let code = "OperationDenied.ZoneNotSupportMultiAttachDisk";
        return Err(ApiError::new(403, code));
    }
    Ok(())
}

fn resolve_size(world: &mut World, params: &Params, disk: &DiskRow, size: Option<u32>) -> Result<u32, ApiError> {
    let source = match params.get("SnapshotId") {
        None => None,
        Some(_) if size::is_ephemeral(&disk.category) => {
            let code = "InvalidOperation.CreateFromSnapshotUnsupported";
            return Err(ApiError::new(403, code));
        }
        Some(id) => {
            let missing = || ApiError::new(404, "InvalidSnapshotId.NotFound");
            let row = world.snapshots.get(id).ok_or_else(missing)?;
            if !row.available() || world.config.holds.archived.iter().any(|held| held == id) {
                return Err(ApiError::new(403, "InvalidSnapshotId.NotReady"));
            }
            if row.encrypted && !disk.encrypted {
                return Err(ApiError::new(403, "InvalidEncrypted.NotMatchSnapshot"));
            }
            Some(row.size)
        }
    };
    let size = match (size, source) {
        (None, None) => return Err(ApiError::missing("Size")),
        (None, Some(source)) => source,
        (Some(size), Some(source)) if size < source => {
            return Err(ApiError::new(403, "InvalidDiskSize.TooSmall"));
        }
        (Some(size), _) => size,
    };
    let level = disk.level.as_deref();
    let allowed = size::sizes(&disk.category, level).unwrap_or(0..=0);
    if allowed.contains(&size) {
        return Ok(size);
    }
    // In range for the category, but not for the level.
    let anyhow = size::sizes(&disk.category, Some("PL0")).unwrap_or(0..=0);
    if disk.category == "cloud_essd" && anyhow.contains(&size) && level != Some("PL1") {
        return Err(ApiError::new(403, "OperationDenied.PerformanceLevelNotMatch"));
    }
    Err(world.documented_error(&[
        (400, "InvalidDiskSize.NotSupported"),
        (403, "InvalidDataDiskSize.ValueNotSupported"),
        (400, "InvalidSize.ValueNotSupported"),
    ]))
}

/// Checks the fields that depend on the size, which may be the snapshot's.
fn check_performance(row: &DiskRow) -> Result<(), ApiError> {
    if row.provisioned_iops > u64::from(size::max_provisioned_iops(row.size)) {
        return Err(ApiError::new(400, "InvalidProvisionedIops.LimitExceed"));
    }
    if row.bursting && row.size <= 3 {
        return Err(ApiError::new(400, "InvalidBurstingEnabled.DiskSizeTooSmall"));
    }
    Ok(())
}

/// The disk and the size in the request, apart from the checks against the state.
fn requested(params: &Params) -> Result<(DiskRow, Option<u32>), ApiError> {
    let category = params.get("DiskCategory").unwrap_or("cloud").to_owned();
    let zone = match params.get("ZoneId") {
        None if category == size::REGIONAL => String::new(),
        Some(_) if category == size::REGIONAL => {
            return Err(ApiError::new(400, "InvalidZoneId.DiskCategoryUnsupported"));
        }
        _ => params.required("ZoneId")?.to_owned(),
    };
    if size::sizes(&category, None).is_none() {
        return Err(ApiError::new(400, "InvalidDiskCategory.NotSupported"));
    }
    let essd = category == "cloud_essd";
    let level = match params.get("PerformanceLevel") {
        None => essd.then(|| "PL1".to_owned()),
        Some("PL0" | "PL1" | "PL2" | "PL3") if !essd => {
            return Err(ApiError::new(400, "InvalidParameter.Conflict"));
        }
        Some(level @ ("PL0" | "PL1" | "PL2" | "PL3")) => Some(level.to_owned()),
        Some(_) => return Err(ApiError::new(400, "InvalidPerformanceLevel.Malformed")),
    };
    let size: Option<u32> = params.parsed("Size")?;
    let auto = category == "cloud_auto";
    let provisioned_iops: Option<u64> = params.parsed("ProvisionedIops")?;
    if provisioned_iops.is_some() && !auto {
        return Err(ApiError::new(400, "ProvisionedIopsForDiskCategoryUnsupported"));
    }
    let bursting = params.flag("BurstingEnabled")?;
    if bursting && !auto {
        return Err(ApiError::new(400, "BurstingEnabledForDiskCategoryUnsupported"));
    }
    let multi_attach = match params.get("MultiAttach") {
        None | Some("Disabled") => false,
        Some("Enabled") if size::is_shareable(&category) => true,
        Some("Enabled") => {
            return Err(ApiError::new(
                403,
                "InvalidParameter.DiskCategoryAndMultiAttachConflict",
            ));
        }
        Some(_) => return Err(ApiError::new(403, "InvalidParameter.MultiAttach")),
    };
    if bursting && multi_attach {
        let code = "BurstingEnabledForMultiAttachDiskUnsupported";
        return Err(ApiError::new(400, code));
    }
    let encrypted = params.flag("Encrypted")?;
    let kms_key = params.get("KMSKeyId").map(str::to_owned);
    if kms_key.is_some() && !encrypted {
        return Err(ApiError::new(400, "InvalidEncrypted.NotMatchKmsKeyId"));
    }
    let row = DiskRow {
        zone,
        category,
        level,
        multi_attach,
        portable: true,
        encrypted,
        kms_key,
        provisioned_iops: provisioned_iops.unwrap_or(0),
        bursting,
        ..DiskRow::default()
    };
    Ok((row, size))
}

pub(crate) fn create_finished(world: &mut World, id: &str, success: bool) {
    if success {
        world
            .disks
            .change(world.retention(), id, |row| row.phase = Phase::Ready);
    } else {
        world.disks.remove(world.retention(), id);
    }
}
