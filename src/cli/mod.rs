//! The flags of the roles that serve, and those that commands share; every setting is also an environment variable.

mod all_in_one;
mod cloud;
mod controller;
mod credential;
mod driver;
mod endpoint;
mod http;
mod kubernetes;
mod leader_election;
mod location;
mod log;
#[cfg(feature = "mock-cloud")]
mod mock_cloud;
mod node;
mod output;
pub(crate) mod parse;
mod pre_stop_hook;
mod rate_limits;
mod server;
mod variable;

pub use all_in_one::{AllInOne, CloudKind};
pub use cloud::CloudArgs;
pub use controller::{Controller, ControllerArgs, ControllerRoleArgs};
pub use credential::{CredentialArgs, Selection};
pub use driver::{DriverArgs, OwnerArgs};
pub use http::{HttpArgs, HttpAuthorization, PageArgs};
pub use kubernetes::KubernetesArgs;
pub use leader_election::LeaderElectionArgs;
pub use location::{InvalidSettings, Location, LocationArgs};
pub use log::{LOG_FORMAT, LogArgs};
#[cfg(feature = "mock-cloud")]
pub use mock_cloud::{Demo, MockCloud};
pub use node::{Node, NodeArgs, NodeDirectoryArgs};
pub use output::OutputFormat;
pub use parse::Interval;
pub use pre_stop_hook::PreStopHook;
pub use server::ServerArgs;
pub use variable::{is_on, variable};
