//! The CSI Controller and GroupController services: parse requests, call the disk services and build responses.

mod change;
mod create;
mod events;
mod group;
mod health;
mod list;
mod node_categories;
mod operation;
mod paging;
mod publish;
mod response;
mod rpc;
mod service;
mod snapshot;
mod validate;

pub use super::request::DriverLocation;
pub use service::Service;
