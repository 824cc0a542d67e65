//! `CreateDisk`.

use super::action::Action;
use super::agenda::Due;
use super::disk::{DiskRow, Phase};
use super::name;
use super::params::Params;
use super::reply::{Answer, Refusal, Reply};
use super::size;
use super::stock;
use super::tag;
use super::world::World;

/// The group of what was put into no other.
const DEFAULT_GROUP: &str = "rg-default";

/// What is asked for, checked as far as it can be without looking at the world.
struct Order {
    zone: String,
    category: String,
    level: Option<String>,
    size: Option<u32>,
    multi_attach: bool,
    encrypted: bool,
    kms_key: Option<String>,
    provisioned_iops: u64,
    bursting: bool,
}

impl World {
    pub(crate) fn create_disk(&mut self, params: &Params, fails_later: bool) -> Reply {
        params.required("RegionId")?;
        if params.get("InstanceId").is_some() {
            // It would make a subscription disk, which no CSI driver may want.
            return Err(Refusal::new(403, "InvalidPayMethod"));
        }
        self.once(Action::CreateDisk, params, |world| {
            world.create_disk_once(params, fails_later)
        })
    }

    fn create_disk_once(&mut self, params: &Params, fails_later: bool) -> Reply {
        let mut order = order(params)?;
        let disk_name = params.get("DiskName").unwrap_or_default().to_owned();
        name::check(&disk_name, "InvalidDiskName.Malformed")?;
        let tags = params.tags()?;
        tag::check_count(&tags)?;
        self.check_place(params, &order)?;
        let key = order.kms_key.take();
        (order.encrypted, order.kms_key) = self.encryption(order.encrypted, key)?;
        let size = self.size_of(params, &order)?;
        check_performance(&order, size)?;
        self.check_quota(&order, size)?;

        let serial = self.rng.body();
        let id = format!("d-{serial}");
        let snapshot = params.get("SnapshotId").map(str::to_owned);
        let load = self.config.delays.load.draw(&mut self.rng);
        let loading = snapshot.is_some() && !load.is_zero();
        self.put_disk(DiskRow {
            id: id.clone(),
            serial,
            name: disk_name,
            description: params.get("Description").unwrap_or_default().to_owned(),
            zone: order.zone,
            category: order.category,
            level: order.level,
            size,
            phase: Phase::Creating,
            attachments: Vec::new(),
            multi_attach: order.multi_attach,
            system: false,
            portable: true,
            snapshot,
            encrypted: order.encrypted,
            kms_key: order.kms_key,
            provisioned_iops: order.provisioned_iops,
            bursting: order.bursting,
            // Everything is in a group; what is in none else is in the default one.
            resource_group: Some(
                params
                    .get("ResourceGroupId")
                    .unwrap_or(DEFAULT_GROUP)
                    .to_owned(),
            ),
            delete_with_instance: false,
            bound_to: None,
            tags,
            created: self.now,
            attached: None,
            detached: None,
            loading,
            growing: None,
            changed: None,
            sticks: false,
            shown_status: None,
            shown_holder: None,
            shown_lock: None,
            unreadable: false,
        });
        let create = self.config.delays.create.draw(&mut self.rng);
        let disk = id.clone();
        if loading {
            self.plan(create + load, Due::Loaded { disk: disk.clone() });
        }
        let due = if fails_later {
            Due::Vanished { disk }
        } else {
            Due::Created { disk }
        };
        self.plan(create, due);
        Ok(Answer::Disk(id))
    }

    fn check_place(&mut self, params: &Params, order: &Order) -> Result<(), Refusal> {
        if params.get("RegionId") != Some(self.region.as_str()) {
            return Err(Refusal::new(404, "InvalidRegionId.NotFound"));
        }
        let regional = order.zone.is_empty();
        if !regional && !self.zones.contains(&order.zone) {
            return Err(Refusal::new(404, "InvalidZoneId.NotFound"));
        }
        if !regional && self.is_sold_out(&order.zone, None) {
            return Err(
                self.alternative(&[(403, "Zone.NotOnSale"), (403, "OperationDenied.NoStock")])
            );
        }
        let place = stock::place(&order.zone);
        if self.is_sold_out(place, Some(&order.category)) {
            return Err(self.alternative(&[
                (400, "InvalidDataDiskCategory.NotSupported"),
                (403, "InvalidDataDiskCategory.ValueNotSupported"),
                (403, "OperationDenied.NoStock"),
            ]));
        }
        if order.level.is_some() && self.is_sold_out(place, order.level.as_deref()) {
            let code = "InvalidPerformanceLevel.ValueNotSupported";
            return Err(Refusal::new(400, code));
        }
        if order.multi_attach && self.is_sold_out(place, Some(stock::MULTI_ATTACH)) {
            let code = "OperationDenied.ZoneNotSupportMultiAttachDisk";
            return Err(Refusal::new(403, code));
        }
        Ok(())
    }

    fn size_of(&mut self, params: &Params, order: &Order) -> Result<u32, Refusal> {
        let source = match params.get("SnapshotId") {
            None => None,
            Some(_) if size::is_ephemeral(&order.category) => {
                let code = "InvalidOperation.CreateFromSnapshotUnsupported";
                return Err(Refusal::new(403, code));
            }
            Some(id) => {
                let missing = || Refusal::new(404, "InvalidSnapshotId.NotFound");
                let row = self.snapshot(id).ok_or_else(missing)?;
                if !row.available() || self.config.holds.archived.iter().any(|held| held == id) {
                    return Err(Refusal::new(403, "InvalidSnapshotId.NotReady"));
                }
                if row.encrypted && !order.encrypted {
                    return Err(Refusal::new(403, "InvalidEncrypted.NotMatchSnapshot"));
                }
                Some(row.size)
            }
        };
        let size = match (order.size, source) {
            (None, None) => return Err(Refusal::missing("Size")),
            (None, Some(source)) => source,
            (Some(size), Some(source)) if size < source => {
                return Err(Refusal::new(403, "InvalidDiskSize.TooSmall"));
            }
            (Some(size), _) => size,
        };
        let level = order.level.as_deref();
        let allowed = size::sizes(&order.category, level).unwrap_or(0..=0);
        if allowed.contains(&size) {
            return Ok(size);
        }
        // In range for the category, but not for the level.
        let anyhow = size::sizes(&order.category, Some("PL0")).unwrap_or(0..=0);
        if order.category == "cloud_essd" && anyhow.contains(&size) && level != Some("PL1") {
            return Err(Refusal::new(
                403,
                "OperationDenied.PerformanceLevelNotMatch",
            ));
        }
        Err(self.alternative(&[
            (400, "InvalidDiskSize.NotSupported"),
            (403, "InvalidDataDiskSize.ValueNotSupported"),
            (400, "InvalidSize.ValueNotSupported"),
        ]))
    }

    fn check_quota(&self, order: &Order, size: u32) -> Result<(), Refusal> {
        let limits = &self.config.limits;
        if limits.no_balance {
            return Err(Refusal::new(403, "InvalidAccountStatus.NotEnoughBalance"));
        }
        let total = |matches: &dyn Fn(&DiskRow) -> bool| -> u64 {
            let rows = self.disks.values().filter(|row| matches(row));
            rows.map(|row| u64::from(row.size)).sum::<u64>() + u64::from(size)
        };
        let same = |row: &DiskRow| row.zone == order.zone && row.category == order.category;
        if limits
            .zone_category_gib
            .is_some_and(|most| total(&same) > most)
        {
            return Err(Refusal::new(400, "QuotaExceed.DiskCapacity"));
        }
        if limits.total_gib.is_some_and(|most| total(&|_| true) > most) {
            return Err(Refusal::new(403, "QuotaExceeded.PostpaidDataDiskCapacity"));
        }
        Ok(())
    }
}

/// What depends on the size, which may be that of the snapshot.
fn check_performance(order: &Order, size: u32) -> Result<(), Refusal> {
    if order.provisioned_iops > u64::from(size::most_provisioned(size)) {
        return Err(Refusal::new(400, "InvalidProvisionedIops.LimitExceed"));
    }
    if order.bursting && size <= 3 {
        return Err(Refusal::new(400, "InvalidBurstingEnabled.DiskSizeTooSmall"));
    }
    Ok(())
}

fn order(params: &Params) -> Result<Order, Refusal> {
    let category = params.get("DiskCategory").unwrap_or("cloud").to_owned();
    let zone = match params.get("ZoneId") {
        None if category == size::REGIONAL => String::new(),
        Some(_) if category == size::REGIONAL => {
            return Err(Refusal::new(400, "InvalidZoneId.DiskCategoryUnsupported"));
        }
        _ => params.required("ZoneId")?.to_owned(),
    };
    if size::sizes(&category, None).is_none() {
        return Err(Refusal::new(400, "InvalidDiskCategory.NotSupported"));
    }
    let essd = category == "cloud_essd";
    let level = match params.get("PerformanceLevel") {
        None => essd.then(|| "PL1".to_owned()),
        Some("PL0" | "PL1" | "PL2" | "PL3") if !essd => {
            return Err(Refusal::new(400, "InvalidParameter.Conflict"));
        }
        Some(level @ ("PL0" | "PL1" | "PL2" | "PL3")) => Some(level.to_owned()),
        Some(_) => return Err(Refusal::new(400, "InvalidPerformanceLevel.Malformed")),
    };
    let size: Option<u32> = params.parsed("Size")?;
    let auto = category == "cloud_auto";
    let provisioned_iops: Option<u64> = params.parsed("ProvisionedIops")?;
    if provisioned_iops.is_some() && !auto {
        return Err(Refusal::new(
            400,
            "ProvisionedIopsForDiskCategoryUnsupported",
        ));
    }
    let bursting = params.flag("BurstingEnabled")?;
    if bursting && !auto {
        return Err(Refusal::new(
            400,
            "BurstingEnabledForDiskCategoryUnsupported",
        ));
    }
    let multi_attach = match params.get("MultiAttach") {
        None | Some("Disabled") => false,
        Some("Enabled") if size::is_shareable(&category) => true,
        Some("Enabled") => {
            return Err(Refusal::new(
                403,
                "InvalidParameter.DiskCategoryAndMultiAttachConflict",
            ));
        }
        Some(_) => return Err(Refusal::new(403, "InvalidParameter.MultiAttach")),
    };
    if bursting && multi_attach {
        let code = "BurstingEnabledForMultiAttachDiskUnsupported";
        return Err(Refusal::new(400, code));
    }
    let encrypted = params.flag("Encrypted")?;
    let kms_key = params.get("KMSKeyId").map(str::to_owned);
    if kms_key.is_some() && !encrypted {
        return Err(Refusal::new(400, "InvalidEncrypted.NotMatchKmsKeyId"));
    }
    Ok(Order {
        zone,
        category,
        level,
        size,
        multi_attach,
        encrypted,
        kms_key,
        provisioned_iops: provisioned_iops.unwrap_or(0),
        bursting,
    })
}
