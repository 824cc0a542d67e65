//! The CSI Node service.

mod service;

pub use service::Service;
