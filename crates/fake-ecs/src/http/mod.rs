//! The fake cloud over HTTP, with its own implementation of signatures and JSON.

mod api;
mod auth_v1;
mod auth_v3;
mod authenticator;
mod control;
mod gateway;
mod handler;
mod imds;
mod imds_sessions;
mod nonces;
mod query;
mod render;
mod request;
mod response;
mod route;
mod server;
mod sts;
mod xml;

pub use handler::{HttpHandler, Reset};
pub use response::{Exchange, Response};
pub(crate) use server::Server;
