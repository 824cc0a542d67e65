//! `diskplugin timeline`: what happened to a volume, in order, from the driver's histories and from Kubernetes.

mod advice;
mod conclude;
mod entry;
mod history;
mod obstacle;
mod render;
mod unresolved;

#[cfg(test)]
mod tests;

pub use conclude::describe;
pub use entry::{Entry, Timeline};
pub use history::{Call, History, Step};
pub use obstacle::{no_controller, no_node_in_zone, node_obstacle};
pub use render::{json, text};
