//! `diskplugin bundle`: one archive for a report of a defect. It contains only what is known to hold no secret.

mod archive;
mod collect;
mod file;
mod flags;
mod object;
mod pages;
mod pod;
mod run;
mod settings;

pub use flags::Flags;
pub use run::run;
