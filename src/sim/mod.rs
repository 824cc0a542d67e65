//! The fake cloud: a simulation of the ECS API, in memory and over HTTP, optionally with loop
//! devices as disks. States are asynchronous, reads can be stale, and paging, tokens, limits and
//! errors follow the ECS API documents. It shares no code with the client under test.

mod action;
mod attach;
pub mod audit;
mod client_token;
pub mod clock;
pub mod cloud;
pub mod config;
mod create;
mod credential;
mod delete;
mod describe;
mod detach;
mod disk;
mod dispatch;
pub mod distribution;
mod duration_text;
mod effect;
mod encryption;
mod error_text;
mod event_queue;
mod existing_disk;
pub mod fault;
mod group;
pub mod health;
mod hidden;
mod history;
mod http;
mod id;
mod index;
pub mod instance;
mod instance_type;
pub mod latency;
pub mod log;
mod loopdev;
mod modify;
mod name;
pub mod options;
mod page;
mod params;
pub mod quota;
mod resize;
mod response;
mod rng;
mod runner;
mod shared;
mod size;
mod snapshot;
pub mod stock;
mod sts;
mod tag;
mod task;
mod tasks;
#[cfg(test)]
mod tests;
pub mod throttle;
mod world;

pub use clock::{Clock, SystemClock, TokioClock};
pub use cloud::{Cloud, Node, StartError};
pub use config::Config;
pub use existing_disk::ExistingDisk;
pub use http::{Exchange, HttpHandler, Reset, Response};
pub use loopdev::{CommandError, LoopError, RunCommand, SystemCommands};
pub use options::{Backing, Options};
