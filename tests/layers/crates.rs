//! Which outer crate may be named where.

use crate::source::Source;

/// A crate that stands for a border, and the beginnings of the paths that lie at it.
const BORDERS: &[(&[&str], &[&str])] = &[
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

/// The paths into a border crate that this file may not name, one line each.
pub(crate) fn refused(file: &Source) -> Vec<String> {
    let named = file.named().into_iter();
    named
        .filter_map(|named| {
            let outer = named.segments.first()?.trim_start_matches("r#");
            let (_, places) = BORDERS.iter().find(|(names, _)| names.contains(&outer))?;
            let allowed = places.iter().any(|place| file.path.starts_with(place));
            let places = places.join(", ");
            (!allowed).then(|| {
                format!(
                    "{}:{}: {}: {outer} is named only in {places}",
                    file.path,
                    named.line,
                    named.segments.join("::")
                )
            })
        })
        .collect()
}
