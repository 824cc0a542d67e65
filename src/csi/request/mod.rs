//! Parses CSI requests into the inputs of the services, one function per RPC, before any side effect. Secrets are not
//! passed on: the driver does not use them.

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

/// The deadline of a call and its parsed request.
pub(super) type Call<T> = (Deadline, T);

/// Checks the size limits of a message and parses it.
pub(super) fn read<M: limits::Limited, T>(
    request: &Request<M>,
    parse: impl FnOnce(&M) -> Result<T>,
) -> Result<Call<T>> {
    let deadline = deadline::of(request);
    request.get_ref().check()?;
    Ok((deadline, parse(request.get_ref())?))
}
