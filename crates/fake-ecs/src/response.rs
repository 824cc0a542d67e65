//! Results of calls, independent of the wire format.

use std::time::Duration;

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    pub(crate) code: String,
    /// `Message` of some errors is null in the real cloud.
    pub(crate) message: Option<String>,
    /// How long a throttled caller should wait.
    pub(crate) wait: Option<Duration>,
}

impl ApiError {
    pub(crate) fn new(status: u16, code: impl Into<String>) -> Self {
        let code = code.into();
        let message = format!("The fake cloud rejected the request: {code}.");
        Self {
            status,
            code,
            message: Some(message),
            wait: None,
        }
    }

    pub(crate) fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    pub(crate) fn without_message(mut self) -> Self {
        self.message = None;
        self
    }

    /// What a valid request with `DryRun` results in.
    pub(crate) fn dry_run() -> Self {
        Self::new(400, "DryRunOperation")
            .with_message("Request validation has been passed with DryRun flag set.")
    }

    pub(crate) fn missing(parameter: &str) -> Self {
        Self::new(400, "MissingParameter").with_message(format!(
            "The input parameter \"{parameter}\" that is mandatory for processing this request is \
             not supplied."
        ))
    }

    pub(crate) fn invalid(parameter: &str) -> Self {
        Self::new(400, "InvalidParameter").with_message(format!(
            "The specified parameter \"{parameter}\" is not valid."
        ))
    }
}

pub(crate) type ApiResult = Result<ApiResponse, ApiError>;

/// Corruption of a response on its way to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseFault {
    /// The connection ends without a response.
    Reset,
    /// The JSON is truncated.
    Truncated,
    /// A status without a body.
    Empty,
    /// A proxy's 502 page.
    Html,
    /// The connection stays open without a response.
    Hang,
}
