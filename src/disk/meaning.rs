//! What a failed verb means for the caller, and what an operator can do about it. The layer above
//! speaks gRPC and knows nothing of the cloud's codes.

use std::error::Error as StdError;

use super::Error;
use crate::cloud::poll::WaitError;
use crate::cloud::{self, Kind};

/// What a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// What is named does not exist.
    NotFound,
    /// The name belongs to something else.
    AlreadyExists,
    /// Somebody must change a state first.
    Precondition,
    /// There is no room, stock or quota.
    Exhausted,
    /// No such size.
    OutOfRange,
    /// It may have happened, or be under way: repeat.
    Unclear,
    /// Something else is being done to it: repeat later.
    Busy,
    /// The deadline came first; it may be under way.
    Deadline,
    /// The credentials do not permit it.
    Denied,
    /// There are no credentials.
    NoCredentials,
    /// The cloud will never do this.
    Refused,
    /// The cloud tried and failed.
    Failed,
}

impl Error {
    /// What it means.
    #[must_use]
    pub fn meaning(&self) -> Meaning {
        match self {
            Self::NoSuchDisk { .. }
            | Self::NoSuchSnapshot { .. }
            | Self::NoSuchGroup { .. }
            | Self::NoSuchNode { .. } => Meaning::NotFound,
            // CSI: these two are INVALID_ARGUMENT.
            Self::InGroup { .. } | Self::OtherMembers { .. } => Meaning::Refused,
            Self::NotCut { .. } => Meaning::Busy,
            Self::NotOurs { .. }
            | Self::InUseElsewhere { .. }
            | Self::StillAttached { .. }
            | Self::Cooling { .. }
            | Self::OnlyOffline { .. }
            | Self::SnapshotNotReady { .. }
            | Self::NeverAttached { .. }
            | Self::SnapshotHeld { .. }
            | Self::NotGroupable { .. }
            | Self::GroupHeld { .. } => Meaning::Precondition,
            Self::Unfit(unfit) => unfit.meaning(),
            Self::Exists { .. } => Meaning::AlreadyExists,
            Self::OutOfStock { .. } | Self::NodeFull { .. } => Meaning::Exhausted,
            Self::OutOfRange { .. } => Meaning::OutOfRange,
            Self::CannotBecome { .. } | Self::Unchangeable { .. } => Meaning::Refused,
            // Not a precondition: the resizer would take that for "only offline".
            Self::NodeStopped { .. } => Meaning::Busy,
            Self::TaskFailed { .. }
            | Self::FellBack { .. }
            | Self::SnapshotFailed { .. }
            | Self::GroupFailed { .. } => Meaning::Failed,
            Self::Queue { .. } | Self::StillDetaching { .. } => Meaning::Deadline,
            Self::Wait {
                source: WaitError::Deadline { .. },
                ..
            } => Meaning::Deadline,
            Self::Wait {
                source: WaitError::Cloud(source),
                ..
            } => of_kind(source.kind()),
            Self::Cloud { source, .. } => of_kind(source.kind()),
        }
    }

    /// What an operator can do about it, where the message does not say so already.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self.root()?.kind() {
            Kind::Denied | Kind::Expired => Some("check the access key and its RAM policy"),
            Kind::Bug => Some("this is a mistake of the driver: please report it with this text"),
            Kind::Credentials => Some(
                "check where the controller takes its credentials from: its log says so at the start",
            ),
            Kind::Unreachable => Some("check the endpoint and the network of the controller"),
            Kind::Throttled => Some("other programs of this account may use its quota up"),
            Kind::Quota => Some("raise the quota in the Quota Center, or free some of it"),
            Kind::Ambiguous
            | Kind::Conflict
            | Kind::InFlight
            | Kind::TokenMismatch
            | Kind::NotFound
            | Kind::OutOfStock
            | Kind::Precondition
            | Kind::OutOfRange
            | Kind::Resign
            | Kind::Invalid
            | Kind::Deadline => None,
        }
    }

    /// The cloud's refusal at the root of it.
    fn root(&self) -> Option<&cloud::Error> {
        match self {
            Self::Wait {
                source: WaitError::Cloud(source),
                ..
            } => Some(source),
            _ => self.source()?.downcast_ref(),
        }
    }
}

fn of_kind(kind: Kind) -> Meaning {
    match kind {
        Kind::Unreachable | Kind::Ambiguous | Kind::Throttled | Kind::Resign => Meaning::Unclear,
        Kind::Conflict | Kind::InFlight | Kind::TokenMismatch => Meaning::Busy,
        Kind::NotFound => Meaning::NotFound,
        Kind::OutOfStock | Kind::Quota => Meaning::Exhausted,
        Kind::Precondition => Meaning::Precondition,
        Kind::OutOfRange => Meaning::OutOfRange,
        Kind::Bug => Meaning::Failed,
        Kind::Denied | Kind::Expired => Meaning::Denied,
        Kind::Credentials => Meaning::NoCredentials,
        Kind::Invalid => Meaning::Refused,
        Kind::Deadline => Meaning::Deadline,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::chain::chain;

    fn refused(cloud_code: &str) -> Error {
        Error::Cloud {
            step: "attach disk d-1 to node i-1".to_owned(),
            source: cloud::Error::answered("AttachDisk", 403, cloud_code).with_request_id("R-1"),
        }
    }

    #[test]
    fn every_kind_of_refusal_has_its_meaning() {
        for (cloud_code, meaning) in [
            ("Forbidden.RAM", Meaning::Denied),
            ("Throttling", Meaning::Unclear),
            ("InternalError", Meaning::Unclear),
            ("InvalidOperation.Conflict", Meaning::Busy),
            ("QuotaExceed.DiskCapacity", Meaning::Exhausted),
            ("ResourcesNotInSameZone", Meaning::Precondition),
        ] {
            assert_eq!(refused(cloud_code).meaning(), meaning, "{cloud_code}");
        }
    }

    #[test]
    fn the_chain_tells_step_disk_node_code_and_request() {
        assert_eq!(
            chain(&refused("Forbidden.RAM")),
            "cannot attach disk d-1 to node i-1: AttachDisk failed with Forbidden.RAM (HTTP 403, \
             RequestId R-1)"
        );
        assert!(refused("Forbidden.RAM").hint().is_some());
    }
}
