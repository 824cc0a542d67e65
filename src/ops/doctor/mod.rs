//! What will not work, and why: checks of cloud, node and cluster that change nothing.

mod check;
pub mod cloud;
pub mod cluster;
mod render;

pub use check::{Check, Report, Status};
pub use render::{json, table};
