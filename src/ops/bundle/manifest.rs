//! What an archive contains, and what could not be read.

use jiff::Timestamp;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(super) struct Manifest {
    /// Version of the program that wrote the archive.
    pub(super) version: &'static str,
    pub(super) collected: Timestamp,
    pub(super) members: Vec<Member>,
    pub(super) missing: Vec<Missing>,
}

#[derive(Debug, Serialize)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) source: String,
    pub(super) bytes: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Missing {
    pub(super) source: String,
    pub(super) reason: String,
}
