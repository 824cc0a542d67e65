//! The CSI Controller service, called in-process over the fake cloud: in memory, in virtual time, and over HTTP on a
//! `wiremock::MockServer`.

mod attachment;
mod cancel;
mod capability;
mod class;
mod code;
mod concurrency;
mod expand;
mod field;
mod group;
pub(crate) mod kit;
mod listing;
mod modify;
mod over_http;
mod placement;
mod published;
mod retry;
mod shared_polls;
mod size;
mod stockout;
