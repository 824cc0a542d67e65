//! The controller beside a small API server of Kubernetes: what it writes there, and how it does without.

mod api;
mod bundle;
mod doctor;
mod events;
mod facts;
mod http_access;
mod kit;
mod leader;
mod orphans;
mod pre_stop_hook;
mod store;
mod taint;
mod timeline;
