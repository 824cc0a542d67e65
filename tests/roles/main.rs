//! Each role as a process: startup, settings, health and shutdown.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(
    dead_code,
    reason = "each file of tests uses its own part of the harness"
)]
mod common;

mod credentials;
mod grpc_core;
mod health;
mod help;
mod logs;
mod misconfiguration;
mod node_limits;
mod node_program;
mod ram_role;
mod registration;
mod settings;
mod shutdown;
mod sockets;
mod startup;
