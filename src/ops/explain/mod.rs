//! `diskplugin explain`: what the classes and claims in YAML files do with this driver. The parser and the selection of
//! candidates are those of the driver; what the API server checks is left to it. Nothing is created.

mod attributes_class;
mod candidate;
mod claim;
mod flags;
mod manifest;
mod object;
mod parameters;
mod report;
mod request;
mod run;
mod settings;
mod storage_class;
#[cfg(test)]
mod tests;
mod text;

pub use flags::Flags;
pub use run::run;
