//! The CSI Controller and GroupController services: parse requests, call the disk services and build responses.

mod capacity;
mod create;
mod events;
mod expand;
mod group;
mod health;
mod list;
mod modify;
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
