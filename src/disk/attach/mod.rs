//! Attaching disks to nodes, detaching them, and publishing them with an access mode.
//!
//! Promise: a disk is never taken from a node that uses it, and no call reports an attachment or its end that is not
//! proven: by a row read after the request, or by an error code that no read contradicts. A repeated call continues
//! the request of an earlier one.
//!
//! A request for an instance passes these states:
//!
//! ```text
//! refused a moment ago? ─yes─► the last refusal      (disk::refusals, per disk and node)
//!  │no
//!  ▼
//! queued ([`queue`], per instance) ──► sent ──accepted──► waiting for the row ──► done
//!  ▲                                    │                  └─deadline─► the next call continues to wait
//!  │                                    └─rejected─► a read decides: done, another holder, final, or retry
//!  └── pause: of the instance ([`backoff`]) or of the disk (disk::refusals) ◄──────────────────────────┘
//! ```
//!
//! An instance that completes nothing is stalled: calls for it return without waiting in its queue.

#[expect(clippy::module_inception, reason = "the operation that the service is named after")]
mod attach;
mod attachments;
mod backoff;
mod detach;
mod explain;
mod force;
mod publish;
mod queue;
mod read_only;
mod retry;
mod target;

pub use attach::Attacher;
pub(super) use attachments::Attachments;
pub use detach::Detacher;
pub use publish::{NodeAccess, PublishRequest, Publisher};
pub use queue::QueueReport;
