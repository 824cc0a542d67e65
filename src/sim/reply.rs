//! What the fake cloud answers: in its own terms, before a face gives it a form.

use std::time::Duration;

use super::disk::DiskRow;
use super::group::{GroupView, Kept};
use super::health::HealthRow;
use super::instance::InstanceRow;
use super::machine::MachineType;
use super::snapshot::SnapshotRow;
use super::stock::ZoneOffer;
use super::tag::TaggedRow;
use super::task::TaskRow;

/// A call that succeeded.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Done,
    Disk(String),
    Snapshot(String),
    /// The task that a change of the category takes.
    Task(Option<String>),
    Disks(Listing<DiskRow>),
    Tasks(Listing<TaskRow>),
    Health(Listing<HealthRow>),
    Tagged(Listing<TaggedRow>),
    Snapshots(Listing<SnapshotRow>),
    Group(String),
    Groups(Listing<GroupView>),
    /// A group was deleted, but for these of its snapshots.
    GroupDeleted(Vec<Kept>),
    Instances(Listing<InstanceRow>),
    Types(Vec<MachineType>),
    Stock(Vec<ZoneOffer>),
    Regions(Vec<String>),
}

/// One page.
#[derive(Debug, Clone)]
pub(crate) struct Listing<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) next: Option<String>,
    /// Meaningless when the caller pages by token, as in the real cloud.
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

/// A call that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: String,
    /// The cloud has no words for some refusals: `Message` is null then.
    pub(crate) message: Option<String>,
    /// How long a throttled caller should stay away.
    pub(crate) wait: Option<Duration>,
}

impl Refusal {
    pub(crate) fn new(status: u16, code: impl Into<String>) -> Self {
        let code = code.into();
        let message = format!("The request was refused by the fake cloud: {code}.");
        Self {
            status,
            code,
            message: Some(message),
            wait: None,
        }
    }

    pub(crate) fn because(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    pub(crate) fn speechless(mut self) -> Self {
        self.message = None;
        self
    }

    pub(crate) fn missing(parameter: &str) -> Self {
        Self::new(400, "MissingParameter").because(format!(
            "The input parameter \"{parameter}\" that is mandatory for processing this request is \
             not supplied."
        ))
    }

    pub(crate) fn invalid(parameter: &str) -> Self {
        Self::new(400, "InvalidParameter").because(format!(
            "The specified parameter \"{parameter}\" is not valid."
        ))
    }
}

/// The outcome of a call.
pub(crate) type Reply = Result<Answer, Refusal>;

/// A way in which an answer is spoilt on its way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mangle {
    /// The connection ends without an answer.
    Reset,
    /// The JSON stops in the middle.
    Truncated,
    /// A status, and nothing else.
    Empty,
    /// A proxy's 502 page.
    Html,
    /// The connection stays open without a response.
    Hang,
}
