//! Names of Kubernetes in the values of `diskTags`, as in `tagSpecification` of the EBS CSI driver: `{{ .PVCName }}`.

use super::value::{Map, Result, SIDECARS};
use crate::csi::request::error::Error;
use crate::model::{Tags, tag};

/// The fields, and the parameters of the sidecars with their values.
const FIELDS: [(&str, &str); 3] = [
    (".PVCName", "pvc/name"),
    (".PVCNamespace", "pvc/namespace"),
    (".PVName", "pv/name"),
];
const ALLOWED: &str = "text with {{ .PVCName }}, {{ .PVCNamespace }} and {{ .PVName }}";

/// Replaces the fields by the names that a sidecar adds to the parameters, and truncates the values. Without
/// parameters, only checks the fields. `field` is the name of the tag's parameter.
pub(super) fn expand(field: impl Fn(&str) -> String, tags: &mut Tags, from: Option<(&Map, &str)>) -> Result<()> {
    for (key, value) in tags.iter_mut() {
        let field = field(key);
        if key.contains("{{") {
            let why = format!("has the tag key {key:?}: only values may contain {{{{ and }}}}");
            return Err(Error::unsupported(field, why));
        }
        let invalid = || Error::value(&*field, value, ALLOWED);
        let mut parts = value.split("{{");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (inside, rest) = part.split_once("}}").ok_or_else(invalid)?;
            let known = FIELDS.iter().find(|(known, _)| *known == inside.trim());
            let (_, of) = known.ok_or_else(invalid)?;
            if let Some((parameters, sidecar)) = from {
                let name = parameters.get(&format!("{SIDECARS}{of}"));
                let why = format!("has value {value:?}, but the request has no {SIDECARS}{of}: run {sidecar}");
                let missing = || Error::unsupported(&*field, why);
                text += name.filter(|name| !name.is_empty()).ok_or_else(missing)?;
            }
            text += rest;
        }
        if from.is_some() {
            *value = text.chars().take(tag::LONGEST_VALUE).collect();
            tag::check(key, value).map_err(|invalid| Error::malformed(field, &invalid))?;
        }
    }
    Ok(())
}

/// The name of the parameter of one tag.
pub(super) fn single(entry: &str) -> impl Fn(&str) -> String {
    move |key| format!("{entry} \"diskTags/{key}\"")
}
