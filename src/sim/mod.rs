//! The fake cloud: one state machine with two faces, in memory and over HTTP, and loop devices
//! behind its disks if wanted. Faithful, not nice: states are asynchronous, reads are stale when
//! asked, paging, tokens, limits and errors are those of the ECS API documents. It shares no code
//! with what it judges.

mod action;
mod agenda;
mod ask;
mod attach;
pub mod audit;
pub mod cloud;
pub mod config;
mod convert;
mod create;
mod credential;
mod delete;
mod detach;
mod disk;
pub mod ecs;
mod effect;
pub mod fault;
mod found;
mod gate;
mod group;
pub mod health;
mod http;
mod ids;
mod index;
pub mod instance;
mod key;
pub mod latency;
mod list;
pub mod log;
mod loopdev;
mod machine;
mod modify;
mod name;
pub mod options;
mod page;
mod params;
pub mod quota;
mod reply;
mod resize;
mod runner;
mod shared;
mod size;
mod snapshot;
pub mod spread;
mod stale;
pub mod stock;
mod sts;
mod tag;
mod task;
#[cfg(test)]
mod tests;
mod text;
pub mod throttle;
mod token;
mod world;

pub use cloud::{Cloud, Node, StartError};
pub use config::Config;
pub use ecs::SimEcs;
pub use found::FoundDisk;
pub use http::{Exchange, HttpFace, Response};
pub use loopdev::LoopError;
pub use options::{Backing, Options};
