//! The face over HTTP: the real wire, with its own reading of signatures and its own JSON.

mod api;
mod auth_v1;
mod auth_v3;
mod control;
mod doorman;
mod exchange;
mod face;
mod imds;
mod query;
mod render;
mod reply;
mod request;
mod server;
mod sts;
mod xml;

pub use exchange::{Exchange, HttpFace, Response};
pub(crate) use server::Server;
