//! An upgrade that would change immutable fields of installed objects is refused with each field.

use serde_json::{Value, json};

use crate::render::{list, read, strict, text, texts};
use crate::report;

#[test]
fn immutable_fields_are_compared_with_the_installed_objects() {
    let rows: Vec<Value> = serde_json::from_str(&read("tests/helm/upgrades.json")).unwrap();
    let values = |row: &Value| row.get("values").cloned().unwrap_or_else(|| json!({}));
    let Some(rendered) = strict("values", &[], rows.iter().map(|row| json!({"values": values(row)}))) else {
        return;
    };
    let inputs = rows.iter().zip(&rendered).map(|(row, output)| {
        let mut installed = output["objects"].as_array().unwrap().clone();
        for object in &mut installed {
            object["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "x"});
            let changes = &row["change"][text(object, "/kind")];
            for (pointer, value) in changes.as_object().into_iter().flatten() {
                let (parent, key) = pointer.rsplit_once('/').unwrap();
                object.pointer_mut(parent).unwrap()[key] = value.clone();
            }
        }
        json!({"values": values(row), "installed": installed})
    });
    let outputs = strict("values", &[], inputs).unwrap();
    report(rows.iter().zip(&outputs).filter_map(|(row, output)| {
        let refused = output["refused"].as_str().unwrap_or_default();
        let wanted = texts(row, "/refused");
        let fits = refused.is_empty() == wanted.is_empty() && wanted.iter().all(|text| refused.contains(text));
        (!fits || !list(output, "/problems").is_empty()).then(|| format!("{}: {output}", row["about"]))
    }));
}
