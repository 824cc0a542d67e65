//! `diskplugin import`: the PersistentVolume and the claim of a disk that exists.

mod flags;
mod run;

pub use flags::Flags;
pub use run::run;
