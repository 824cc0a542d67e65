//! `ModifyDiskSpec` and `ModifyDiskAttribute`.

use jiff::Timestamp;

use super::agenda::Due;
use super::disk::DiskRow;
use super::instance::Power;
use super::machine::MachineType;
use super::name;
use super::params::Params;
use super::reply::{Answer, Refusal, Reply};
use super::size;
use super::spread::until;
use super::task::{Spec, TaskRow, TaskStage};
use super::world::World;

/// Categories that a disk can be changed from and to.
const CHANGEABLE: [&str; 4] = ["cloud_essd", "cloud_auto", "cloud_ssd", "cloud_efficiency"];

impl World {
    pub(crate) fn modify_disk_spec(&mut self, params: &Params, fails_later: bool) -> Reply {
        let id = params.required("DiskId")?;
        // Empty values are taken for values.
        if params.is_empty("PerformanceLevel") {
            return Err(Refusal::new(400, "InvalidPerformanceLevel.Malformed"));
        }
        if params.is_empty("DiskCategory") {
            return Err(Refusal::new(400, "InvalidDiskCategory.ValueNotSupported"));
        }
        let missing = || Refusal::new(404, "InvalidDiskId.NotFound");
        let row = self.disk(id).ok_or_else(missing)?.clone();
        self.check_changeable(&row)?;
        let to = self.spec_of(params, &row)?;
        let is = Spec {
            category: row.category.clone(),
            level: row.level.clone(),
            provisioned_iops: row.provisioned_iops,
        };
        if to == is {
            let code = "NoChangeInDiskCategoryAndPerformanceLevel";
            return Err(Refusal::new(403, code));
        }
        self.check_spec(&row, &to)?;
        if params.flag("DryRun")? {
            return Err(Refusal::new(400, "DryRunOperation")
                .because("Request validation has been passed with DryRun flag set."));
        }
        if to.category == is.category {
            self.put_spec(id, to, None);
            return Ok(Answer::Task(None));
        }
        let task = format!("t-{}", self.rng.body());
        self.tasks.push(TaskRow {
            id: task.clone(),
            disk: id.to_owned(),
            to,
            stage: TaskStage::Processing,
            begun: self.now,
            ended: None,
        });
        let delay = self.config.delays.modify.draw(&mut self.rng);
        let due = Due::Modified {
            task: task.clone(),
            success: !fails_later,
        };
        self.plan(delay, due);
        Ok(Answer::Task(Some(task)))
    }

    /// What the disk has from now on. What only one category has ends with it.
    pub(crate) fn put_spec(&mut self, disk: &str, to: Spec, changed: Option<Timestamp>) {
        self.change_disk(disk, |row| {
            row.bursting &= to.category == "cloud_auto";
            row.category = to.category;
            row.level = to.level;
            row.provisioned_iops = to.provisioned_iops;
            row.changed = changed.or(row.changed);
        });
    }

    fn check_changeable(&mut self, row: &DiskRow) -> Result<(), Refusal> {
        if self.is_changing(&row.id) {
            return Err(self.alternative(&[
                (403, "InvalidStatus.DiskNotReady"),
                (403, "IncorrectDiskStatus"),
            ]));
        }
        match row.status() {
            "Available" | "In_use" => {}
            "Creating" => return Err(Refusal::new(403, "InvalidStatus.DiskNotReady")),
            _ => return Err(Refusal::new(403, "IncorrectDiskStatus")),
        }
        if row.multi_attach {
            return Err(Refusal::new(403, "InvalidOperation.MultiAttachDisk"));
        }
        if !CHANGEABLE.contains(&row.category.as_str()) {
            return Err(Refusal::new(403, "InvalidDiskCategory.NotSupported"));
        }
        if self.is_being_snapshotted(&row.id) {
            return Err(Refusal::new(403, "DiskCreatingSnapshot"));
        }
        if row.growing.is_some() {
            return Err(Refusal::new(403, "OperationDenied.DiskExpansionUnfinished"));
        }
        let held = row.attachments.first();
        let power = held.and_then(|held| self.instance(&held.instance));
        match power.map(|row| row.power) {
            None | Some(Power::Running | Power::Stopped) => Ok(()),
            Some(_) => Err(Refusal::new(
                400,
                "InvalidOperation.InstanceStatusUnsupported",
            )),
        }
    }

    /// What the parameters ask for, over what the disk is.
    fn spec_of(&mut self, params: &Params, row: &DiskRow) -> Result<Spec, Refusal> {
        let category = params.get("DiskCategory").unwrap_or(&row.category);
        if !CHANGEABLE.contains(&category) {
            return Err(self.alternative(&[
                (400, "InvalidDiskCategory.ValueNotSupported"),
                (403, "InvalidDiskCategory.NotSupported"),
            ]));
        }
        let essd = category == "cloud_essd";
        let level = match params.get("PerformanceLevel") {
            Some("PL0" | "PL1" | "PL2" | "PL3") if !essd => {
                return Err(Refusal::new(400, "InvalidPerformanceLevelParam.Mismatch"));
            }
            Some(level @ ("PL0" | "PL1" | "PL2" | "PL3")) => Some(level.to_owned()),
            Some(_) => return Err(Refusal::new(400, "InvalidPerformanceLevel.Malformed")),
            None if !essd => None,
            None => Some(row.level.clone().unwrap_or_else(|| "PL1".to_owned())),
        };
        let auto = category == "cloud_auto";
        let provisioned_iops = match params.parsed::<u64>("ProvisionedIops")? {
            Some(_) if !auto => {
                let code = "ProvisionedIopsForDiskCategoryUnsupported";
                return Err(Refusal::new(400, code));
            }
            Some(iops) => iops,
            None if auto => row.provisioned_iops,
            None => 0,
        };
        Ok(Spec {
            category: category.to_owned(),
            level,
            provisioned_iops,
        })
    }

    fn check_spec(&mut self, row: &DiskRow, to: &Spec) -> Result<(), Refusal> {
        if to.level.as_deref() == Some("PL0") && row.level.as_deref() != Some("PL0") {
            return Err(Refusal::new(403, "InvalidPerformanceLevel.TooLow"));
        }
        let sizes = size::sizes(&to.category, to.level.as_deref()).unwrap_or(0..=0);
        if !sizes.contains(&row.size) {
            let code = "OperationDenied.PerformanceLevelNotMatch";
            return Err(Refusal::new(403, code));
        }
        let most = u64::from(size::most_provisioned(row.size));
        if to.category == "cloud_auto" && to.provisioned_iops > most {
            return Err(Refusal::new(400, "InvalidProvisionedIops.LimitExceed"));
        }
        if to.category == row.category {
            return Ok(());
        }
        if row
            .changed
            .is_some_and(|at| until(at, self.now) < self.config.rules.cooling)
        {
            return Err(Refusal::new(403, "DiskInCoolingPeriod"));
        }
        let holder = row.attachments.first().map(|held| held.instance.clone());
        let machine = holder.and_then(|id| self.instance(&id).map(|row| row.instance_type.clone()));
        if machine.is_some_and(|name| !MachineType::named(&name).takes(&to.category)) {
            return Err(self.alternative(&[
                (403, "InvalidInstanceType.NotSupportDiskCategory"),
                (403, "InvalidDiskCategory.InstanceTypeUnsupported"),
            ]));
        }
        if self.is_sold_out(&row.zone, None) || self.is_sold_out(&row.zone, Some(&to.category)) {
            return Err(Refusal::new(403, "OperationDenied.NoStock"));
        }
        Ok(())
    }

    pub(crate) fn modify_disk_attribute(&mut self, params: &Params) -> Reply {
        params.required("RegionId")?;
        let ids = match (params.get("DiskId"), params.list("DiskIds")) {
            (Some(_), ids) if !ids.is_empty() => {
                return Err(Refusal::new(400, "ParameterConflict.DiskIdAndDiskIds"));
            }
            (Some(id), _) => vec![id],
            (None, ids) if ids.is_empty() => {
                return Err(Refusal::new(400, "MissingParameter.DiskIdOrDiskIds"));
            }
            (None, ids) => ids,
        };
        let bursting: Option<bool> = params.parsed("BurstingEnabled")?;
        let disk_name = params.get("DiskName");
        name::check(disk_name.unwrap_or_default(), "InvalidDiskName.Malformed")?;
        let description = params.get("Description");
        if bursting.is_none() && disk_name.is_none() && description.is_none() {
            return Err(Refusal::new(400, "NoAttributeToModify"));
        }
        // All or nothing: what is wrong with one is found before any is changed.
        for id in &ids {
            let missing = || Refusal::new(404, "InvalidDiskId.NotFound");
            let row = self.disk(id).ok_or_else(missing)?;
            if bursting.is_some() {
                self.check_burst(row)?;
            }
        }
        for id in ids {
            self.change_disk(id, |row| {
                row.bursting = bursting.unwrap_or(row.bursting);
                if let Some(name) = disk_name {
                    name.clone_into(&mut row.name);
                }
                if let Some(text) = description {
                    text.clone_into(&mut row.description);
                }
            });
        }
        Ok(Answer::Done)
    }

    fn check_burst(&self, row: &DiskRow) -> Result<(), Refusal> {
        let code = if self.is_changing(&row.id) {
            "BurstingEnabledForModifyingDiskUnsupported"
        } else if row.multi_attach {
            "BurstingEnabledForMultiAttachDiskUnsupported"
        } else if row.category != "cloud_auto" {
            "BurstingEnabledForDiskCategoryUnsupported"
        } else if row.size <= 3 {
            "InvalidBurstingEnabled.DiskSizeTooSmall"
        } else {
            return Ok(());
        };
        Err(Refusal::new(400, code))
    }
}
