//! `DetachDisk`.

use super::agenda::Due;
use super::attach::check_ephemeral;
use super::disk::{Link, Phase};
use super::instance::Power;
use super::params::Params;
use super::reply::{Answer, Refusal, Reply};
use super::world::World;

impl World {
    pub(crate) fn detach_disk(&mut self, params: &Params, fails_later: bool) -> Reply {
        let instance = params.required("InstanceId")?;
        let disk = params.required("DiskId")?;
        let Some(machine) = self.instance(instance) else {
            return Err(Refusal::new(404, "InvalidInstanceId.NotFound"));
        };
        let power = machine.power;
        let missing = || Refusal::new(404, "InvalidDiskId.NotFound");
        let row = self.disk(disk).ok_or_else(missing)?;
        let sticks = row.sticks || fails_later;
        if row.phase == Phase::Creating {
            return Err(Refusal::new(403, "IncorrectDiskStatus"));
        }
        if row.system {
            return Err(Refusal::new(403, "DiskTypeViolation"));
        }
        if !row.portable {
            return Err(Refusal::new(403, "DiskNotPortable"));
        }
        check_ephemeral(row, params.flag("DeleteWithInstance")?)?;
        if row.multi_attach && params.get("DeleteWithInstance").is_some() {
            return Err(Refusal::new(403, "DeleteWithInstance.Conflict"));
        }
        match row.on(instance).map(|attachment| attachment.link) {
            Some(Link::Attached) => {}
            Some(Link::Attaching) => return Err(Refusal::new(403, "IncorrectDiskStatus")),
            Some(Link::Detaching) => {
                return Err(self.alternative(&[
                    (403, "InvalidOperation.DiskDetachingFromThisEcs"),
                    (403, "IncorrectDiskStatus"),
                ]));
            }
            None if row.attachments.is_empty() => {
                return Err(self.alternative(&[
                    (403, "DependencyViolation"),
                    (404, "InvalidDisk.AlreadyDetached"),
                    (403, "IncorrectDiskStatus"),
                ]));
            }
            None => return Err(Refusal::new(403, "DependencyViolation")),
        }
        if !matches!(power, Power::Running | Power::Stopped) {
            return Err(Refusal::new(403, "IncorrectInstanceStatus"));
        }
        if !self.has_turn(instance, Link::Detaching) {
            return Err(self.alternative(&[
                (403, "InvalidOperation.Conflict"),
                (400, "DisksDetachingOnEcsExceeded"),
            ]));
        }
        self.begin_detach(disk, instance, sticks);
        Ok(Answer::Done)
    }

    /// Takes the disk off the instance; one that sticks never comes off.
    pub(crate) fn begin_detach(&mut self, disk: &str, instance: &str, sticks: bool) {
        self.change_disk(disk, |row| {
            let mut attachments = row.attachments.iter_mut();
            if let Some(attachment) = attachments.find(|a| a.instance == instance) {
                attachment.link = Link::Detaching;
            }
            row.sticks = sticks;
        });
        if !sticks {
            let delay = self.config.delays.detach.draw(&mut self.rng);
            let (disk, instance) = (disk.to_owned(), instance.to_owned());
            self.plan(delay, Due::Detached { disk, instance });
        }
    }

    pub(crate) fn disk_detached(&mut self, disk: &str, instance: &str) {
        let now = self.now;
        self.change_disk(disk, |row| {
            row.attachments.retain(|a| a.instance != instance);
            row.detached = Some(now);
        });
    }

    /// Lets a stuck detach come to its end.
    pub(crate) fn release(&mut self, disk: &str) {
        let Some(row) = self.disks.get(disk).filter(|row| row.sticks) else {
            return;
        };
        let stuck = row.attachments.iter().filter(|a| a.link == Link::Detaching);
        let instances: Vec<String> = stuck.map(|a| a.instance.clone()).collect();
        for instance in instances {
            self.begin_detach(disk, &instance, false);
        }
    }
}
