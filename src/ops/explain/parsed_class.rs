//! A StorageClass that the driver accepts.

use super::parameters::Map;
use crate::csi::param::Class;
use crate::disk::NewDisk;

/// A class whose parameters are parsed.
#[derive(Debug)]
pub(super) struct Parsed {
    /// The parameters that are accepted.
    pub(super) parameters: Map,
    /// The mount options that are accepted.
    pub(super) mount_options: Vec<String>,
    pub(super) class: Class,
    pub(super) new: NewDisk,
}
