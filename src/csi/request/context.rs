//! Entries of `volume_context` and `publish_context`. Keys are case-insensitive; unknown keys are ignored.

use std::collections::HashMap;

use super::error::{Error, Result};
use super::field;
use crate::model::{Filesystem, Tuning, context};

type Map = HashMap<String, String>;

/// The filesystem for capabilities that name none.
pub(super) fn filesystem(volume_context: &Map) -> Result<Option<Filesystem>> {
    let name = context::get(volume_context, context::FS_TYPE);
    let entry = || entry("volume_context", context::FS_TYPE);
    name.map(|name| field::filesystem(entry(), name)).transpose()
}

pub(super) fn tuning(volume_context: &Map) -> Result<Tuning> {
    let tuning = Tuning::of(volume_context);
    tuning.map_err(|invalid| field::invalid_tuning("volume_context", &invalid))
}

/// The value of a boolean entry; `None` if absent.
pub(super) fn flag(field: &str, map: &Map, key: &str) -> Result<Option<bool>> {
    match context::get(map, key) {
        None => Ok(None),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Some(text) => Err(Error::value(entry(field, key), text, "\"true\" or \"false\"")),
    }
}

fn entry(field: &str, key: &str) -> String {
    format!("{field} {key:?}")
}
