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

use self::error::Result;
use self::limits::Limited;
pub use self::topology::DriverLocation;
use super::deadline;
use super::proto::CreateVolumeRequest;
use crate::base::Deadline;
use crate::disk::NewDisk;

/// The deadline of a call and its parsed request.
pub(super) type ParsedCall<T> = (Deadline, T);

/// The disk that CreateVolume would create.
pub fn new_disk(message: &CreateVolumeRequest, location: &DriverLocation) -> Result<NewDisk> {
    message.check()?;
    Ok(create_volume::create(message, location)?.new)
}

/// Checks the size limits of a message and parses it.
pub(super) fn read<M: Limited, T>(request: &Request<M>, parse: impl FnOnce(&M) -> Result<T>) -> Result<ParsedCall<T>> {
    let deadline = deadline::of(request);
    request.get_ref().check()?;
    Ok((deadline, parse(request.get_ref())?))
}
