//! Each role and command as a process: startup, settings, health and shutdown, with Kubernetes and Prometheus, and
//! that no secret is printed.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each test binary uses its own part of the harness")]
mod common;

mod bundle;
mod credentials;
mod demo;
mod doctor;
mod explain;
mod grpc_core;
mod health;
mod help;
mod http_client;
mod http_port;
mod kubectl_plugin;
mod kubernetes;
mod logs;
mod metrics;
mod misconfiguration;
mod monitoring;
mod node_limits;
mod programs;
mod ram_role;
mod registration;
mod running;
mod secrets;
mod settings;
mod shutdown;
mod soak;
mod sockets;
mod startup;
mod status_page;
mod text;
mod timeline;
mod tls;
mod traces;
