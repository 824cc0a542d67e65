//! The ECS API: its actions and their client ([`Client`]).

pub mod action;
pub mod api_health;
pub mod base;
mod caller;
pub mod client;
mod code;
pub mod credential;
pub mod endpoint;
pub mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod http_transport;
pub mod metadata;
pub mod model;
pub mod poll;
pub mod rate_limit;
mod request_secrets;
mod response;
pub mod retry;
pub mod server;
mod server_clock;
pub mod sign;
pub mod tls;
pub mod transport;
pub mod wire;

pub use action::*;
pub use api_health::ApiHealth;
pub use base::span;
pub use caller::Settings;
pub use client::Client;
pub use error::{Condition, Error, Kind};
pub use server_clock::ServerClock;
pub use tls::Trust;

pub type Result<T> = std::result::Result<T, Error>;
