//! The commands of operators, one folder each: its flags, what it reads, what it concludes, and the text. They change
//! something only if a flag requests it.

pub mod bundle;
mod cloud;
pub mod doctor;
pub mod explain;
mod kubeconfig;
pub mod orphans;
mod process;
pub(crate) mod process_client;
pub mod timeline;

pub use cloud::{CloudClient, Connect};
