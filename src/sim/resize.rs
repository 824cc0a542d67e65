//! `ResizeDisk`.

use super::action::Action;
use super::agenda::Due;
use super::instance::Power;
use super::params::Params;
use super::reply::{Answer, Refusal, Reply};
use super::size;
use super::world::World;

impl World {
    pub(crate) fn resize_disk(&mut self, params: &Params) -> Reply {
        params.required("DiskId")?;
        params.required("NewSize")?;
        self.once(Action::ResizeDisk, params, |world| {
            world.resize_disk_once(params)
        })
    }

    fn resize_disk_once(&mut self, params: &Params) -> Reply {
        let id = params.required("DiskId")?;
        let wanted: u32 = params.parsed("NewSize")?.unwrap_or(0);
        let online = match params.get("Type") {
            None | Some("offline") => false,
            Some("online") => true,
            Some(_) => return Err(Refusal::new(400, "InvalidParam.Type")),
        };
        let missing = || Refusal::new(404, "InvalidDiskId.NotFound");
        let row = self.disk(id).ok_or_else(missing)?.clone();
        match row.status() {
            "In_use" if online => self.check_running(&row.attachments[0].instance)?,
            "In_use" => {}
            "Available" if !online => {}
            _ => return Err(Refusal::new(403, "IncorrectDiskStatus")),
        }
        if online && row.category == "cloud" {
            return Err(Refusal::new(403, "InvalidDiskSize.NotSupportResizeOnline"));
        }
        if row.growing.is_some() || self.is_changing(id) {
            return Err(Refusal::new(400, "LastOrderProcessing"));
        }
        if self.is_being_snapshotted(id) {
            return Err(Refusal::new(403, "DiskCreatingSnapshot"));
        }
        if wanted <= row.size {
            return Err(
                self.alternative(&[(403, "InvalidDiskSize"), (403, "InvalidDiskSize.TooSmall")])
            );
        }
        let sizes = size::sizes(&row.category, row.level.as_deref());
        if sizes.is_none_or(|sizes| wanted > *sizes.end()) {
            return Err(self.alternative(&[
                (403, "InvalidDiskSize.TooLarge"),
                (403, "InvalidDataDiskSize.ValueNotSupported"),
            ]));
        }
        self.change_disk(id, |row| row.growing = Some(wanted));
        let delay = self.config.delays.resize.draw(&mut self.rng);
        let due = Due::Resized {
            disk: id.to_owned(),
            size: wanted,
            visible: online || row.attachments.is_empty(),
        };
        self.plan(delay, due);
        Ok(Answer::Done)
    }

    fn check_running(&self, instance: &str) -> Result<(), Refusal> {
        match self.instance(instance).map(|row| row.power) {
            Some(Power::Running) => Ok(()),
            _ => Err(Refusal::new(403, "InvalidInstanceStatus.NotRunning")),
        }
    }

    pub(crate) fn disk_resized(&mut self, disk: &str, size: u32, success: bool) {
        self.change_disk(disk, |row| {
            row.growing = None;
            if success {
                row.size = size;
            }
        });
    }
}
