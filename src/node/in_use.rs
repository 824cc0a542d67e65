//! The error about a mount or device in use, which names its users.

use std::time::Duration;

use super::Error;
use super::observe::CallContext;
use crate::base::{Deadline, error_chain};
use crate::linux::{HolderQuery, Host, holder};

/// Timeout of the search for the users. A wait for a release ends this long before the deadline, so that the error is
/// returned in time.
pub(super) const SEARCH_TIMEOUT: Duration = Duration::from_secs(1);

/// Searches for the users of a resource.
pub(super) async fn in_use(host: &dyn Host, call: CallContext<'_>, resource: String, query: &HolderQuery) -> Error {
    let by = match host.users(Deadline::after(SEARCH_TIMEOUT), query).await {
        Ok(users) => holder::list(&users, query),
        Err(error) => format!("an unknown user ({})", error_chain(&error)),
    };
    Error::DeviceInUse {
        volume: call.id().clone(),
        operation: call.operation,
        resource,
        by,
    }
}
