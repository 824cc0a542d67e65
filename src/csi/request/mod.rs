//! Requests are parsed here, once, before anything is done: from the message of CSI to what the services are asked for,
//! one function for each RPC. Secrets end here: the driver has no use for them.

use tonic::Request;

pub(super) mod capability;
mod context;
pub(super) mod create_volume;
pub mod error;
pub(super) mod field;
mod limits;
pub(super) mod node;
pub(super) mod page;
pub(super) mod publish;
pub(super) mod snapshot;
mod topology;
pub(super) mod validate;
pub(super) mod volume;

use self::error::Error;
pub use self::topology::Settings;
use super::deadline;
use crate::base::Deadline;

type Result<T, E = Error> = std::result::Result<T, E>;

/// The caller's deadline, and what it asks for.
pub(super) type Call<T> = (Deadline, T);

/// Parses a message once every field is known to have a size that CSI allows.
pub(super) fn read<M: limits::Limited, T>(
    request: &Request<M>,
    parse: impl FnOnce(&M) -> Result<T>,
) -> Result<Call<T>> {
    let deadline = deadline::of(request);
    request.get_ref().check()?;
    Ok((deadline, parse(request.get_ref())?))
}
