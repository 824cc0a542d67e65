//! `diskplugin orphans`: each class, resources that are never reported, and the guards of `--delete`.

mod deletion;
mod fixture;
mod metrics;
mod report;
