//! Evidence: what the responses of the cloud prove, and what they do not.
//!
//! Promise: a resource is created once under its name; no response states that it exists, or does not exist, without
//! proof. Reads lag, lists are empty without permission, another access key can belong to another account, and a
//! response can be lost after the request took effect. Without proof, calls return `UNAVAILABLE`, and are retried.
//!
//! Three rules decide everything:
//!
//! 1. **A resource is absent** ([`existence`]) if this process deleted it; if two reads at least [`CONFIRM_AFTER`]
//!    apart lack it; or if the call that had to act on it names it as missing, and a read lacks it. Each of these reads
//!    must contain a canary: a resource that must be visible ([`rows`]). A resource that the cloud accepted less than
//!    [`ACCEPTED_TTL`] ago is never absent unless this process deleted it.
//! 2. **A row counts** if it was read at least [`READ_LAG`] after this process became the active controller
//!    ([`active`]): earlier ones can be older than a deletion by the previous one. Except the row of a resource that
//!    was created, by the clock of the cloud, after this process had requested it.
//! 3. **A name is free** ([`name`]) if no request of this process may still take effect, and a listing with a canary
//!    that began at least [`EFFECT_DELAY`] after the last such request, and after this process became active, lacks the
//!    name ([`listing`]). Until then no error is final, and no other client token is used.
//!
//! Conclusions are discarded when the access key changes.
//!
//! States of a name and their transitions:
//!
//! ```text
//! Free ──request sent──► Unresolved ──accepted, or found by its tags──► Created
//!  ▲                      │      ▲ │                                       │
//!  ├──refused─────────────┘      │ └─no response, call canceled: stays     │
//!  ├──excluded by a listing──────┘                                         │
//!  └──absent (rule 1)──────────────────────────────────────────────────────┘
//! ```

use std::time::Duration;

mod active;
mod creator;
mod existence;
mod listing;
mod name;
mod nodes;
mod rows;

pub(super) use active::Active;
pub(super) use creator::{CreateCall, Creator};
pub(super) use name::consumes_token;
pub(super) use nodes::Nodes;
pub(super) use rows::{Rows, names_missing};

/// How old the state in a description may be (eventual consistency).
pub const READ_LAG: Duration = Duration::from_secs(3);

/// Time between the two reads that prove an absence.
const CONFIRM_AFTER: Duration = Duration::from_secs(60);

/// How long the row of an accepted resource may be hidden. Indexes of the cloud can lag together, so that another call
/// names the resource as missing as well.
const ACCEPTED_TTL: Duration = Duration::from_secs(600);

/// Time after which a request without a response has taken effect or never will, and its tags are indexed.
const EFFECT_DELAY: Duration = Duration::from_secs(60);
