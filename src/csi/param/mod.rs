//! Parameters of the classes. Names are case-insensitive. Unknown names and invalid values are errors that name the
//! parameter, its value and the allowed values.

pub mod mutable;
pub mod snapshot;
mod storage_class;
mod template;
#[cfg(test)]
mod tests;
mod value;

pub use storage_class::Class;
pub(super) use value::SIDECARS;
