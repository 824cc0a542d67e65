//! Which outer crate may be named where.

use crate::source::Source;

/// A crate that stands for a border, and the beginnings of the paths that lie at it.
const BORDERS: &[(&[&str], &[&str])] = &[
    (&["tonic", "tonic_prost"], &["csi/", "app/"]),
    (
        &["reqwest"],
        &["cloud/transport", "cloud/metadata", "cloud/credential"],
    ),
    (&["nix"], &["host/", "sim/"]),
    (&["kube", "k8s_openapi"], &["cluster/", "app/"]),
    (
        &["hyper", "hyper_util", "http_body_util"],
        &["sim/http/", "app/http"],
    ),
    (&["anyhow"], &["main.rs", "app/"]),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_border_crate_elsewhere_is_refused_however_it_is_named() {
        for text in [
            "use tonic::Status;",
            "use tonic;",
            "use ::tonic::Status;",
            "fn f() -> Result<(), tonic::Status> { Ok(()) }",
            "#[tonic::async_trait]\nimpl X for Y {}",
            "use {std::fmt, tonic::Status};",
        ] {
            assert_eq!(
                refused(&Source::new("disk/create.rs", text)).len(),
                1,
                "{text}"
            );
        }
    }

    #[test]
    fn a_border_crate_at_its_border_is_welcome() {
        for (path, text) in [
            ("csi/status.rs", "use tonic::Status;"),
            ("cloud/transport.rs", "use reqwest::Client;"),
            ("cloud/credential/ram_role.rs", "use reqwest::Client;"),
            ("host/mount.rs", "use nix::mount::mount;"),
            ("sim/http/serve.rs", "use hyper::Request;"),
            ("main.rs", "fn main() -> anyhow::Result<()> { Ok(()) }"),
        ] {
            assert_eq!(refused(&Source::new(path, text)), [""; 0], "{path}");
        }
    }

    #[test]
    fn each_border_has_an_outside() {
        for (path, text) in [
            ("cloud/client.rs", "use reqwest::Client;"),
            ("app/node.rs", "use nix::sys::signal::Signal;"),
            ("node/stage.rs", "use kube::Client;"),
            ("app/mock_cloud.rs", "use hyper::Request;"),
            ("cli.rs", "use anyhow::Context;"),
        ] {
            assert_eq!(refused(&Source::new(path, text)).len(), 1, "{path}");
        }
    }

    #[test]
    fn a_module_or_field_of_that_name_is_let_be() {
        for text in [
            "use crate::model::nix::X;",
            "fn f() { self.kube.call(); }",
            "mod nix {}",
        ] {
            assert_eq!(
                refused(&Source::new("disk/create.rs", text)),
                [""; 0],
                "{text}"
            );
        }
    }
}
