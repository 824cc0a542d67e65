//! The fields of a span as text.

use std::fmt::Debug;

use tracing::field::{Field, Visit};

/// In the order in which they were recorded.
#[derive(Debug, Default)]
pub(super) struct Fields(pub(super) Vec<(&'static str, String)>);

impl Fields {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(field, _)| *field == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}
