//! A fake cloud for tests, with a manual clock.

use std::time::Duration;

use jiff::Timestamp;

use crate::action::Action;
use crate::advance::{advance, populated};
use crate::call::ApiCall;
use crate::disk::DiskRow;
use crate::dispatch;
use crate::distribution::after;
use crate::log::Via;
use crate::options::Options;
use crate::params::Params;
use crate::response::{ApiResponse, ApiResult, Listing};
use crate::world::World;

pub(super) const NODE: &str = "i-one";
pub(super) const OTHER: &str = "i-two";
pub(super) const ZONE: &str = "cn-beijing-a";

/// A fake cloud whose time the test advances.
#[derive(Debug)]
pub(super) struct Sandbox {
    pub(super) world: World,
    now: Timestamp,
}

impl Sandbox {
    /// Two nodes in one zone and one in another, with additional flags.
    pub(super) fn new(flags: &[&str]) -> Self {
        let nodes = "--nodes=i-one=cn-beijing-a,i-two=cn-beijing-a,i-far=cn-beijing-b";
        let flags = std::iter::once(nodes).chain(flags.iter().copied());
        let options = Options::from_flags(flags).unwrap();
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        Self {
            world: populated(options.initial_state(), now),
            now,
        }
    }

    pub(super) fn configure(&mut self, patch: &serde_json::Value) {
        let config = self.world.config.patched(patch).unwrap();
        self.world.configure(config);
    }

    pub(super) fn pass(&mut self, seconds: u64) {
        self.now = after(self.now, Duration::from_secs(seconds));
        advance(&mut self.world, self.now);
    }

    pub(super) fn set_back(&mut self, seconds: u64) {
        self.now -= Duration::from_secs(seconds);
    }

    pub(super) fn call(&mut self, action: Action, params: Params) -> ApiResult {
        let call = ApiCall {
            action,
            params,
            via: Via::V1,
            nonce: None,
        };
        let admission = dispatch::admit(&mut self.world, self.now, &call);
        dispatch::serve(&mut self.world, self.now, &call, admission).reply
    }

    /// The status and code of an error, or `ok`.
    pub(super) fn outcome(&mut self, action: Action, params: Params) -> String {
        match self.call(action, params) {
            Ok(_) => "ok".to_owned(),
            Err(error) => format!("{} {}", error.status, error.code),
        }
    }

    pub(super) fn create(&mut self, params: Params) -> String {
        match self.call(Action::CreateDisk, params) {
            Ok(ApiResponse::Disk(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn snapshot(&mut self, disk: &str) -> String {
        match self.call(Action::CreateSnapshot, Params::default().with("DiskId", disk)) {
            Ok(ApiResponse::Snapshot(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn attach(&mut self, disk: &str, instance: &str) -> String {
        self.outcome(Action::AttachDisk, pair(disk, instance))
    }

    pub(super) fn force_attach(&mut self, disk: &str, instance: &str) -> String {
        self.outcome(Action::AttachDisk, pair(disk, instance).with("Force", "true"))
    }

    pub(super) fn detach(&mut self, disk: &str, instance: &str) -> String {
        self.outcome(Action::DetachDisk, pair(disk, instance))
    }

    pub(super) fn delete(&mut self, disk: &str) -> String {
        self.outcome(Action::DeleteDisk, Params::default().with("DiskId", disk))
    }

    pub(super) fn resize(&mut self, disk: &str, size: u32, mode: &str) -> String {
        let params = Params::default()
            .with("DiskId", disk)
            .with("NewSize", size.to_string())
            .with("Type", mode);
        self.outcome(Action::ResizeDisk, params)
    }

    pub(super) fn disks(&mut self, params: Params) -> Listing<DiskRow> {
        match self.call(Action::DescribeDisks, params) {
            Ok(ApiResponse::Disks(listing)) => listing,
            other => panic!("{other:?}"),
        }
    }

    /// The status of a disk in lists; `gone` if they omit it.
    pub(super) fn status(&mut self, disk: &str) -> String {
        let params = region().with("DiskIds", format!("[{disk:?}]"));
        let rows = self.disks(params).rows;
        rows.first().map_or("gone".to_owned(), |row| row.status().to_owned())
    }
}

pub(super) fn region() -> Params {
    Params::default().with("RegionId", "cn-beijing")
}

/// A 20 GiB ESSD.
pub(super) fn essd() -> Params {
    region()
        .with("ZoneId", ZONE)
        .with("DiskCategory", "cloud_essd")
        .with("Size", "20")
}

/// A 20 GiB disk of a legacy category.
pub(super) fn legacy() -> Params {
    essd().with("DiskCategory", "cloud_efficiency")
}

fn pair(disk: &str, instance: &str) -> Params {
    Params::default().with("DiskId", disk).with("InstanceId", instance)
}
