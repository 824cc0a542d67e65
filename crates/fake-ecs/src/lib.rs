//! A fake of the disk API of Alibaba-style ECS clouds.
//!
//! One state machine with an injected clock: states are asynchronous, reads can be stale, and paging, tokens, limits
//! and errors follow the documents of the ECS API. It checks signatures and renders responses with its own code, so
//! that it does not repeat a mistake of the client under test.
//!
//! It is used in memory ([`Cloud::http`]), on a wiremock server ([`Cloud::mount`], feature `wiremock`), or over HTTP
//! ([`Cloud::start`]), then optionally with loop devices as disks.

mod action;
mod advance;
mod api_error;
mod attach;
pub mod audit;
mod call;
pub mod call_quota;
mod client_token;
pub mod clock;
pub mod cloud;
pub mod config;
mod create;
mod create_group;
mod create_snapshot;
mod credential;
mod delete;
mod delete_group;
mod delete_snapshot;
mod describe;
mod describe_groups;
mod describe_health;
mod describe_stock;
mod describe_tasks;
mod detach;
mod disk;
pub mod disk_quota;
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
mod instance_changes;
mod instance_type;
mod introduction;
mod invalid_text;
pub mod latency;
pub mod log;
mod loopdev;
mod modify;
mod name;
pub mod options;
mod page;
mod pages;
mod params;
mod resize;
mod response;
mod rng;
mod run_to_completion;
mod runner;
mod secret;
mod shared;
mod size;
mod snapshot;
pub mod stock;
mod sts;
mod table;
mod tag;
mod tag_resources;
mod task;
#[cfg(test)]
mod tests;
pub mod throttle;
mod tokens;
#[cfg(feature = "wiremock")]
mod wiremock;
mod world;

pub use clock::{Clock, SystemClock, TokioClock};
pub use cloud::{Cloud, Node, StartError};
pub use config::Config;
pub use existing_disk::ExistingDisk;
pub use http::{Exchange, HttpHandler, Reset, Response};
pub use introduction::introduction;
pub use invalid_text::InvalidText;
pub use loopdev::{CommandError, LoopError, RunCommand, SystemCommands};
pub use options::{Backing, Options};
