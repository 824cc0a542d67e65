//! What a controller has to do with the API server of the cluster. All of it is off unless it is set.

use std::path::PathBuf;

use clap::Args;

/// What a controller does with the API server.
#[derive(Debug, Args)]
pub struct Kubernetes {
    /// ConfigMap to keep what each instance type of the cluster's nodes takes, for --instance-types-file of the nodes, which
    /// kubelet mounts there. It is in the namespace of the controller's ServiceAccount, or of the kubeconfig's context, and must be there.
    #[arg(long, env = "DISKPLUGIN_INSTANCE_TYPES_CONFIG_MAP", value_parser = name)]
    pub instance_types_config_map: Option<String>,

    /// Write events: on a claim, that disks are sold out and that its disk is in use elsewhere; on a Node, that it takes no more
    /// disks.
    #[arg(long, env = "DISKPLUGIN_EVENTS")]
    pub events: bool,

    /// Key of the taint that nodes join the cluster with, such as diskplugin.csi.example/agent-not-ready; it is taken off
    /// each node when the driver is registered there, whatever its effect.
    #[arg(long, env = "DISKPLUGIN_STARTUP_TAINT", value_parser = key)]
    pub startup_taint: Option<String>,

    /// kubeconfig of the API server, for a controller that is no pod; unset, it is the pod's own, by the token of its
    /// ServiceAccount. The API server is only called where one of the flags above is set.
    #[arg(long, env = "DISKPLUGIN_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
}

impl Kubernetes {
    /// The flags that need the API server, as they are written.
    #[must_use]
    pub fn wanted(&self) -> Vec<&'static str> {
        let flags = [
            (
                self.instance_types_config_map.is_some(),
                "--instance-types-config-map",
            ),
            (self.events, "--events"),
            (self.startup_taint.is_some(), "--startup-taint"),
        ];
        let set = flags.into_iter().filter(|(set, _)| *set);
        set.map(|(_, flag)| flag).collect()
    }
}

/// A name as Kubernetes has it (RFC 1123 subdomain).
fn name(text: &str) -> Result<String, String> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = text.len() <= 253
        && text.chars().all(is_inner)
        && text.starts_with(is_end)
        && text.ends_with(is_end);
    match fits {
        true => Ok(text.to_owned()),
        false => Err(
            "allowed are lower-case letters, digits, - and ., at most 253, with a letter or digit at both ends"
                .to_owned(),
        ),
    }
}

/// A key as Kubernetes has it: a name of up to 63 letters, digits, `-`, `_` and `.`, and before it perhaps a domain.
fn key(text: &str) -> Result<String, String> {
    let (domain, own) = match text.split_once('/') {
        Some((domain, own)) => (Some(domain), own),
        None => (None, text),
    };
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_end = |c: char| c.is_ascii_alphanumeric();
    let fits = own.len() <= 63
        && own.chars().all(is_inner)
        && own.starts_with(is_end)
        && own.ends_with(is_end)
        && domain.is_none_or(|domain| name(domain).is_ok());
    match fits {
        true => Ok(text.to_owned()),
        false => Err(
            "allowed is the key of a taint, such as diskplugin.csi.example/agent-not-ready, without value and effect"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_keys_are_those_of_kubernetes() {
        for good in ["a", "disks-instance-types", "a.b-1"] {
            assert!(name(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "a_b", "-a", "a.", "a/b", &"a".repeat(254)] {
            assert!(name(bad).is_err(), "{bad}");
        }
        for good in [
            "not-ready",
            "diskplugin.csi.example/agent-not-ready",
            "A_b.c",
        ] {
            assert!(key(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "/a",
            "a/",
            "x/y/z",
            "a:NoExecute",
            "a=b",
            "é",
            &"a".repeat(64),
        ] {
            assert!(key(bad).is_err(), "{bad}");
        }
    }
}
