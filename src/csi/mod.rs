//! The Container Storage Interface: gRPC services, request parsing and status codes.

mod authority;
pub mod controller;
#[cfg(fuzzing)]
pub mod fuzzing;
mod health;
pub mod identity;
pub mod layer;
pub mod node;
pub mod param;
pub mod probe;
pub mod proto;
pub mod registration;
pub mod request;
pub mod server;
pub mod services;
pub mod socket;
mod status;
mod trace_context;

pub use status::failure;
