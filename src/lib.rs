//! A CSI driver for Alibaba-style ECS cloud disks. `docs/architecture.md` maps the code.

pub mod app;
pub mod base;
pub mod cli;
pub mod cluster;
pub mod csi;
pub mod disk;
pub mod fencing;
pub mod http;
pub mod linux;
pub mod model;
pub mod node;
pub mod ops;
pub mod telemetry;
