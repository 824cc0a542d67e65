//! Linux, as the node needs it: commands, block devices, mounts, filesystems.

pub mod exec;

pub use exec::{Command, Exec, ExecError, Failure, Output, Processes};
