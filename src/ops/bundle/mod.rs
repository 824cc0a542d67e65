//! `diskplugin bundle`: one archive for a report of a defect. It contains only what is known to hold no secret.

mod archive;
mod manifest;
mod object;
mod pod;

pub use archive::{Archive, file_name};
pub use object::{event, included, is_of_driver, uses_volume};
pub use pod::{Settings, is_of_chart, pod};
