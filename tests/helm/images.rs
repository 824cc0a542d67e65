//! The guide to copying images lists the images of the chart, each with its command.

use serde_json::Value;

use crate::render::{read, yaml};
use crate::report;

const PAGE: &str = "docs/guides/copy-images.md";

/// Collects `repository:tag` of the images that have both.
fn images(value: &Value, found: &mut Vec<String>) {
    let of = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let (repository, tag) = (of("repository"), of("tag"));
    if !repository.is_empty() && !tag.is_empty() {
        found.push(format!("{repository}:{tag}"));
    }
    for value in value.as_object().into_iter().flat_map(|map| map.values()) {
        images(value, found);
    }
}

#[test]
fn guide_lists_and_copies_every_image() {
    let mut found = Vec::new();
    let values = yaml(&read("deploy/helm/diskplugin/values.yaml")).remove(0);
    images(&values, &mut found);
    assert_eq!(found.len(), 7, "{found:?}");
    let page = read(PAGE);
    report(found.iter().flat_map(|image| {
        let name = image.rsplit('/').next().unwrap();
        let row = format!("| `{image}` |");
        let copy = format!("docker://{image} docker://$REGISTRY/{name}");
        let missing = [row, copy].into_iter().filter(|text| !page.contains(text));
        missing
            .map(|text| format!("{PAGE} does not contain: {text}"))
            .collect::<Vec<_>>()
    }));
}
