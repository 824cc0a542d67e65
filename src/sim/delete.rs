//! `DeleteDisk`.

use super::agenda::Due;
use super::disk::Phase;
use super::params::Params;
use super::reply::{Answer, Refusal, Reply};
use super::world::World;

impl World {
    pub(crate) fn delete_disk(&mut self, params: &Params) -> Reply {
        let id = params.required("DiskId")?;
        let Some(row) = self.disk(id) else {
            // The text says that it is ignored, the table of errors lists it.
            return if self.config.rules.missing_is_error {
                Err(Refusal::new(404, "InvalidDiskId.NotFound"))
            } else {
                Ok(Answer::Done)
            };
        };
        let (status, loading, serial) = (row.status(), row.loading, row.serial.clone());
        match status {
            "Available" => {}
            "Creating" => {
                return Err(self.alternative(&[
                    (403, "IncorrectDiskStatus"),
                    (403, "IncorrectDiskStatus.Initializing"),
                ]));
            }
            "In_use" => {
                return Err(
                    self.alternative(&[(403, "DiskStillAttached"), (403, "IncorrectDiskStatus")])
                );
            }
            _ => return Err(Refusal::new(403, "IncorrectDiskStatus")),
        }
        if self.is_changing(id) {
            return Err(Refusal::new(403, "IncorrectDiskStatus"));
        }
        if loading {
            return Err(Refusal::new(403, "IncorrectDiskStatus.Initializing"));
        }
        if self.is_being_snapshotted(id) {
            return Err(Refusal::new(403, "DiskCreatingSnapshot"));
        }
        self.change_disk(id, |row| row.phase = Phase::Deleting);
        let delay = self.config.delays.delete.draw(&mut self.rng);
        let disk = id.to_owned();
        self.plan(delay, Due::Deleted { disk, serial });
        Ok(Answer::Done)
    }
}
