//! The modules that may use certain crates.

use crate::source::Source;

/// Crates of an interface, and the beginnings of the paths that may use them.
const INTERFACES: &[(&[&str], &[&str])] = &[
    (&["tonic", "tonic_prost"], &["csi/", "app/"]),
    (&["reqwest"], &["ecs/http_transport", "ecs/metadata", "ecs/credential"]),
    (&["nix"], &["linux/", "fake-ecs/"]),
    (&["kube", "k8s_openapi"], &["cluster/", "app/"]),
    (
        &["axum", "hyper", "hyper_util", "http_body_util"],
        &["fake-ecs/", "http/", "ops/process_client"],
    ),
    (&["fake_ecs"], &["app/", "cli"]),
    (&["anyhow"], &["main.rs", "app/", "http/", "ops/"]),
];

/// The paths into such a crate that this file must not name, one line each.
pub(crate) fn violations(file: &Source) -> Vec<String> {
    let named = file.named().into_iter();
    named
        .filter_map(|named| {
            let outer = named.segments.first()?.trim_start_matches("r#");
            let (_, places) = INTERFACES.iter().find(|(names, _)| names.contains(&outer))?;
            let allowed = places.iter().any(|place| file.path.starts_with(place));
            let places = places.join(", ");
            let (line, path) = (named.line, named.segments.join("::"));
            (!allowed).then(|| format!("{}:{line}: {path}: only {places} may use {outer}", file.path))
        })
        .collect()
}
