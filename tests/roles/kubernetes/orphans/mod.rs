//! `diskplugin orphans`: each class, resources that are never reported, and the guards of `--delete`.

mod deletion;
pub(crate) mod fixture;
mod metrics;
mod report;
