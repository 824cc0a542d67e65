//! The driver and its commands with a fake API server: their reads and writes, and its errors.

mod api;
mod bundle;
mod doctor;
mod events;
mod facts;
mod http_access;
mod import;
pub(crate) mod kit;
mod leader;
mod orphans;
mod pre_stop_hook;
mod store;
mod taint;
mod timeline;
