//! Disks that are incompatible with a node, or with a use on it.

use crate::cloud::{self, Condition};
use crate::model::Failure;

/// A disk that cannot be attached to a node, or not for the requested use.
#[derive(Debug, thiserror::Error)]
#[error("disk {text}")]
pub struct Incompatible {
    text: String,
    failure: Failure,
    source: Option<cloud::Error>,
}

impl Incompatible {
    pub(super) fn new(failure: Failure, text: String, source: Option<cloud::Error>) -> Self {
        Self {
            text,
            failure,
            source,
        }
    }

    pub(in crate::disk) fn failure(&self) -> Failure {
        self.failure
    }
}

/// Why no other node can hold the disk, if the refusal says so.
pub(super) fn immovable(refusal: Condition) -> Option<&'static str> {
    Some(match refusal {
        Condition::SubscriptionDisk => ": it is a subscription disk, which belongs to its instance",
        Condition::LocalDisk | Condition::DeletedWithNode => {
            ": disks of its category belong to one instance and cannot be moved"
        }
        Condition::NotFirstNode => {
            ": it is an elastic ephemeral disk, which stays with the first instance that it was \
             attached to"
        }
        Condition::SystemDisk | Condition::NotBootable => ": it is a system disk",
        _ => return None,
    })
}
