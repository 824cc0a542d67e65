//! Parameters of the classes. Names are case-insensitive. Unknown names and invalid values are errors that name the
//! parameter, its value and the allowed values.

mod class;
mod kind;
pub mod mutable;
pub mod snapshot;
#[cfg(test)]
mod tests;
mod value;

pub use class::Class;
pub(super) use value::SIDECARS;
