mod events;
mod group;
mod node_categories;
mod operation;
mod paging;
mod response;
mod rpc;
mod service;
mod validate;

pub use super::request::DriverLocation;
pub use service::Service;
