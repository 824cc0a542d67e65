//! `AttachDisk`.

use super::agenda::Due;
use super::disk::{Attachment, DiskRow, Link, Phase};
use super::instance::Power;
use super::machine::MachineType;
use super::params::Params;
use super::reply::{Answer, Refusal, Reply};
use super::size;
use super::world::World;

/// Most instances that share a disk.
const MOST_SHARERS: usize = 16;

/// The category that is in no zone, and the only one that can be taken by force.
const REGIONAL: &str = "cloud_regional_disk_auto";

/// Whether such a disk can be moved between instances at all.
pub(crate) fn check_kind(row: &DiskRow) -> Result<(), Refusal> {
    if !row.portable {
        return Err(Refusal::new(403, "DiskNotPortable"));
    }
    if row.category.starts_with("local_") || row.category.starts_with("ephemeral") {
        return Err(Refusal::new(400, "DiskCategory.OperationNotSupported"));
    }
    Ok(())
}

/// Elastic ephemeral disks come and go with `DeleteWithInstance` only.
pub(crate) fn check_ephemeral(row: &DiskRow, delete_with_instance: bool) -> Result<(), Refusal> {
    if size::is_ephemeral(&row.category) && !delete_with_instance {
        let code = "InvalidParameter.DeleteWithInstance";
        return Err(Refusal::new(403, code));
    }
    Ok(())
}

impl World {
    pub(crate) fn attach_disk(&mut self, params: &Params, fails_later: bool) -> Reply {
        let instance = params.required("InstanceId")?;
        let disk = params.required("DiskId")?;
        let delete_with_instance = params.flag("DeleteWithInstance")?;
        let force = params.flag("Force")?;
        if self.instance(instance).is_none() {
            return Err(Refusal::new(404, "InvalidInstanceId.NotFound"));
        }
        let missing = || Refusal::new(404, "InvalidDiskId.NotFound");
        let row = self.disk(disk).ok_or_else(missing)?.clone();
        check_kind(&row)?;
        check_ephemeral(&row, delete_with_instance)?;
        if row.bound_to.as_ref().is_some_and(|bound| bound != instance) {
            let code = "InvalidOperation.OtherInstanceUnsupported";
            return Err(Refusal::new(403, code));
        }
        if force {
            self.check_force(&row, instance)?;
        } else {
            self.check_attachable(&row, instance)?;
        }
        self.check_instance_takes(&row, instance)?;
        // To be left out, whatever its value (ECS, multi-attach).
        if row.multi_attach && params.get("DeleteWithInstance").is_some() {
            return Err(Refusal::new(403, "DeleteWithInstance.Conflict"));
        }
        if !self.has_turn(instance, Link::Attaching) {
            return Err(self.alternative(&[
                (403, "InvalidOperation.Conflict"),
                (400, "OperationConflict.DisksAttachingParallellyExceed"),
            ]));
        }
        let attachment = Attachment {
            instance: instance.to_owned(),
            link: Link::Attaching,
            device: self.free_device(instance),
            since: self.now,
        };
        if force {
            self.agenda
                .cancel(|due| matches!(due, Due::Detached { disk: d, .. } if d == disk));
        }
        let attached_to = instance.to_owned();
        self.change_disk(disk, |row| {
            if force {
                // Whoever had it sees its reads and writes fail from now on.
                row.attachments.clear();
                row.sticks = false;
            }
            row.attachments.push(attachment);
            row.delete_with_instance = delete_with_instance;
            if size::is_ephemeral(&row.category) {
                row.bound_to = Some(attached_to);
            }
        });
        let delay = self.config.delays.attach.draw(&mut self.rng);
        let (disk, instance) = (disk.to_owned(), instance.to_owned());
        let due = if fails_later {
            Due::AttachFailed { disk, instance }
        } else {
            Due::Attached { disk, instance }
        };
        self.plan(delay, due);
        Ok(Answer::Done)
    }

    fn check_attachable(&mut self, row: &DiskRow, instance: &str) -> Result<(), Refusal> {
        if row.phase == Phase::Creating {
            return Err(Refusal::new(403, "IncorrectDiskStatus"));
        }
        let held = if row.multi_attach {
            row.on(instance)
        } else {
            row.attachments.first()
        };
        match held.map(|attachment| attachment.link) {
            None => {}
            Some(Link::Attaching) => {
                return Err(self.alternative(&[
                    (403, "IncorrectDiskStatus"),
                    (403, "InvalidOperation.Conflict"),
                ]));
            }
            Some(Link::Attached) => {
                return Err(
                    self.alternative(&[(403, "IncorrectDiskStatus"), (404, "InvalidDisk.InUse")])
                );
            }
            Some(Link::Detaching) => return Err(Refusal::new(403, "IncorrectDiskStatus")),
        }
        if row.attachments.len() >= MOST_SHARERS {
            return Err(Refusal::new(403, "DiskAttachedNumberExceeded"));
        }
        Ok(())
    }

    /// Whether the disk may be pulled from an instance of another zone.
    fn check_force(&self, row: &DiskRow, instance: &str) -> Result<(), Refusal> {
        let code = |what| Refusal::new(400, format!("InvalidParameterForce.{what}"));
        if row.category != REGIONAL {
            return Err(code("DiskCategoryNotSupported"));
        }
        if row.multi_attach {
            return Err(code("MultiAttachDiskNotSupported"));
        }
        if row.phase == Phase::Creating {
            return Err(Refusal::new(403, "IncorrectDiskStatus"));
        }
        let zone = |id: &str| self.instance(id).map(|row| row.zone.clone());
        match row.attachments.first() {
            Some(held) if zone(&held.instance) == zone(instance) => {
                Err(Refusal::new(403, "InvalidInstance.ZoneConflict"))
            }
            Some(held) if held.link == Link::Attaching => {
                Err(Refusal::new(403, "IncorrectDiskStatus"))
            }
            _ => Ok(()),
        }
    }

    fn check_instance_takes(&self, row: &DiskRow, instance: &str) -> Result<(), Refusal> {
        let missing = || Refusal::new(404, "InvalidInstanceId.NotFound");
        let machine = self.instance(instance).ok_or_else(missing)?;
        let ready = match machine.power {
            // Seen in the wild: described as Running, and yet not ready.
            Power::Running => machine.ready <= self.now,
            Power::Stopped => true,
            Power::Pending | Power::Starting | Power::Stopping => false,
        };
        if !ready {
            return Err(Refusal::new(400, "IncorrectInstanceStatus"));
        }
        // A regional disk has no zone, and goes to all.
        if !row.zone.is_empty() && machine.zone != row.zone {
            return Err(Refusal::new(403, "ResourcesNotInSameZone"));
        }
        let kind = MachineType::named(&machine.instance_type);
        if !kind.takes(&row.category) {
            return Err(Refusal::new(
                403,
                "InvalidInstanceType.NotSupportDiskCategory",
            ));
        }
        if row.multi_attach && kind.nvme == "unsupported" {
            return Err(Refusal::new(403, "InvalidInstanceType.NvmeUnsupported"));
        }
        let most = self
            .config
            .rules
            .disk_quantity
            .unwrap_or(kind.disk_quantity);
        // The system disk takes one place.
        let held = 1 + self.disks_on(instance).count();
        if held >= usize::try_from(most).unwrap_or(usize::MAX) {
            return Err(Refusal::new(403, "InstanceDiskLimitExceeded"));
        }
        Ok(())
    }

    /// The attachments of an instance, whatever their state.
    pub(crate) fn disks_on<'a>(
        &'a self,
        instance: &'a str,
    ) -> impl Iterator<Item = &'a Attachment> {
        let rows = self
            .held_by
            .of(instance)
            .filter_map(|id| self.disks.get(id));
        rows.filter_map(move |row| row.on(instance))
    }

    /// Whether the instance may begin one more attach or detach.
    pub(crate) fn has_turn(&self, instance: &str, link: Link) -> bool {
        if !self.config.rules.one_at_a_time {
            return true;
        }
        let running = self.disks_on(instance).filter(|a| a.link == link).count();
        let moving = |a: &&Attachment| a.link != Link::Attached;
        if self.config.rules.shared_turn && self.disks_on(instance).filter(moving).count() > 0 {
            return false;
        }
        let tag = |key| {
            let row = self.instance(instance);
            row.is_some_and(|row| row.tags.get(key).is_some_and(|value| value == "true"))
        };
        match link {
            Link::Attaching => running == 0 || tag("supportConcurrencyAttach"),
            // Five at a time is what the real cloud allows then.
            _ => running == 0 || tag("supportConcurrencyDetach") && running < 5,
        }
    }

    fn free_device(&self, instance: &str) -> String {
        let used: Vec<&str> = self.disks_on(instance).map(|a| a.device.as_str()).collect();
        let names = ('b'..='z').map(|letter| format!("/dev/xvd{letter}"));
        names
            .chain(('a'..='z').map(|letter| format!("/dev/xvda{letter}")))
            .find(|name| !used.contains(&name.as_str()))
            .unwrap_or_default()
    }

    pub(crate) fn disk_attached(&mut self, disk: &str, instance: &str, success: bool) {
        let now = self.now;
        self.change_disk(disk, |row| {
            if !success {
                row.attachments
                    .retain(|a| a.instance != instance || a.link != Link::Attaching);
                return;
            }
            let mut attachments = row.attachments.iter_mut();
            if let Some(attachment) = attachments.find(|a| a.instance == instance) {
                attachment.link = Link::Attached;
                attachment.since = now;
                row.attached = Some(now);
            }
        });
    }
}
