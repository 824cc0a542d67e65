//! `diskplugin orphans`: each class, what is never reported, and the guards of `--delete`.

mod deletion;
mod fixture;
mod metrics;
mod report;
