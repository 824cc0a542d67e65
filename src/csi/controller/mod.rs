mod events;
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
mod volume;

pub use super::request::DriverLocation;
pub use service::Service;
