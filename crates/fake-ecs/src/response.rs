//! Results of calls, independent of the wire format.

use super::api_error::ApiError;
use super::disk::DiskRow;
use super::group::{GroupView, RemainingMember};
use super::health::HealthRow;
use super::instance::InstanceRow;
use super::instance_type::InstanceTypeSpec;
use super::snapshot::SnapshotRow;
use super::stock::ZoneAvailability;
use super::tag::TaggedRow;
use super::task::TaskRow;

#[derive(Debug, Clone)]
pub(crate) enum ApiResponse {
    Done,
    Disk(String),
    Snapshot(String),
    /// The task of a change of the category.
    Task(Option<String>),
    Disks(Listing<DiskRow>),
    Tasks(Listing<TaskRow>),
    Health(Listing<HealthRow>),
    Tagged(Listing<TaggedRow>),
    Snapshots(Listing<SnapshotRow>),
    Group(String),
    Groups(Listing<GroupView>),
    /// A group was deleted, except for these snapshots.
    GroupDeleted(Vec<RemainingMember>),
    Instances(Listing<InstanceRow>),
    Types(Vec<InstanceTypeSpec>),
    Stock(Vec<ZoneAvailability>),
    Regions(Vec<String>),
}

#[derive(Debug, Clone)]
pub(crate) struct Listing<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) next: Option<String>,
    /// Meaningless if the caller pages by token, as in the real cloud.
    pub(crate) total: u64,
    pub(crate) page_number: u64,
    pub(crate) page_size: u64,
}

impl<T> Listing<T> {
    pub(crate) fn empty() -> Self {
        Self {
            rows: Vec::new(),
            next: None,
            total: 0,
            page_number: 1,
            page_size: 10,
        }
    }

    pub(crate) fn map<U>(self, with: impl FnMut(T) -> U) -> Listing<U> {
        Listing {
            rows: self.rows.into_iter().map(with).collect(),
            next: self.next,
            total: self.total,
            page_number: self.page_number,
            page_size: self.page_size,
        }
    }
}

pub(crate) type ApiResult = Result<ApiResponse, ApiError>;
