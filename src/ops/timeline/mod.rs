//! `diskplugin timeline`: what happened to a volume, in order, from the driver's histories and from Kubernetes.

mod advice;
mod conclude;
mod entry;
mod flags;
mod history;
mod obstacle;
mod render;
mod run;
mod unresolved;

#[cfg(test)]
mod tests;

pub use conclude::describe;
pub use flags::Flags;
pub use run::run;
