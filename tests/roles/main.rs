//! Each role as a process: how it starts, what it is told, how it ends.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(
    dead_code,
    reason = "each file of tests uses its own part of the harness"
)]
mod common;

mod credentials;
mod ending;
mod grpc_core;
mod health;
mod help;
mod logs;
mod node_program;
mod registration;
mod roles;
mod settings;
mod sockets;
mod starting;
mod trouble;
