//! Values of parameters: one syntax for each type, wherever it is written.

use std::str::FromStr;

use tonic::Status;

use crate::model::{Tags, tag};

/// The refusal of a value.
pub(super) fn refuse(key: &str, value: &str, allowed: &str) -> Status {
    Status::invalid_argument(format!(
        "parameter {key:?} has value {value:?}; allowed: {allowed}"
    ))
}

/// The refusal of a parameter that goes only with another one.
pub(super) fn unfit(key: &str, why: &str) -> Status {
    Status::invalid_argument(format!("parameter {key:?} {why}"))
}

/// Yes or no.
pub(super) fn boolean(key: &str, value: &str) -> Result<bool, Status> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" | "enabled" => Ok(true),
        "false" | "no" | "0" | "disabled" => Ok(false),
        _ => Err(refuse(key, value, "\"true\" or \"false\"")),
    }
}

/// One value of a type.
pub(super) fn parse<T: FromStr>(key: &str, value: &str, allowed: &str) -> Result<T, Status> {
    value.parse().map_err(|_| refuse(key, value, allowed))
}

/// Values of a type, separated by commas, in their order; each once.
pub(super) fn list<T: FromStr + PartialEq>(
    key: &str,
    value: &str,
    allowed: &str,
) -> Result<Vec<T>, Status> {
    let mut items = Vec::new();
    for item in value.split(',') {
        let item = parse_item(key, value, item, allowed)?;
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Ok(items)
}

fn parse_item<T: FromStr>(key: &str, value: &str, item: &str, allowed: &str) -> Result<T, Status> {
    item.trim().parse().map_err(|_| refuse(key, value, allowed))
}

/// A number of IOPS from 0 to the most that any disk can buy.
pub(super) fn iops(key: &str, value: &str, most: u32) -> Result<u32, Status> {
    let allowed = format!("a whole number from 0 to {most}");
    let iops: u32 = parse(key, value, &allowed)?;
    if iops > most {
        return Err(refuse(key, value, &allowed));
    }
    Ok(iops)
}

/// One tag of the user's, which must be one that the cloud takes and none of the driver's own.
pub(super) fn tag(key: &str, name: &str, value: &str, tags: &mut Tags) -> Result<(), Status> {
    tag::check(name, value)
        .map_err(|refused| Status::invalid_argument(format!("parameter {key:?}: {refused}")))?;
    // The cloud compares keys without case (`TagKey.Duplication`).
    if tags.keys().any(|other| other.eq_ignore_ascii_case(name)) {
        return Err(Status::invalid_argument(format!(
            "parameter {key:?}: tag {name:?} is given twice; the cloud compares keys without case"
        )));
    }
    tags.insert(name.to_owned(), value.to_owned());
    Ok(())
}

/// One word without spaces, such as the id of a resource group or a key; none when empty.
pub(super) fn word(key: &str, value: &str) -> Result<Option<String>, Status> {
    let fits = |c: char| c.is_ascii_graphic() && c != ',';
    if value.len() > 128 || !value.chars().all(fits) {
        return Err(refuse(key, value, "one id without spaces"));
    }
    Ok(Some(value.to_owned()).filter(|value| !value.is_empty()))
}

/// Tags, `key:value` by commas. The value goes on to the next comma and may have colons.
pub(super) fn tags(key: &str, value: &str) -> Result<Tags, Status> {
    let mut tags = Tags::new();
    for pair in value.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, of) = pair
            .split_once(':')
            .ok_or_else(|| refuse(key, value, "key:value pairs, separated by commas"))?;
        tag(key, name.trim(), of.trim(), &mut tags)?;
    }
    Ok(tags)
}
