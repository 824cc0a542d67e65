//! `diskplugin doctor`: what will not work, and why: checks of cloud, node and cluster that change nothing.

mod access;
mod check;
mod cloud;
mod cluster;
mod flags;
mod proxy;
mod render;
mod run;

pub use check::{Check, Status};
pub use flags::{Flags, NodeFlags};
pub use run::{run, run_on_node};
