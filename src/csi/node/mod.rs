//! The CSI Node service.

mod request;
mod service;
mod status;

pub use service::Service;
