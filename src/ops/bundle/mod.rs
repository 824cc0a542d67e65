//! `diskplugin bundle`: one archive for a report of a defect, without secrets.

mod archive;
mod manifest;
mod object;
mod redact;

pub use archive::{Archive, file_name};
pub use object::{is_of_driver, uses_volume, without_history};
pub use redact::{Redactor, is_sensitive};
