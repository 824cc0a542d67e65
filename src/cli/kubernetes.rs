//! Flags of the controller features that use the API server of the cluster. All are off by default.

use std::path::PathBuf;

use clap::Args;

use super::{Interval, LeaderElectionArgs, interval};

#[derive(Debug, Args)]
pub struct KubernetesArgs {
    #[command(flatten)]
    pub leader_election: LeaderElectionArgs,

    /// ConfigMap for the attachment limits of the instance types of the cluster's nodes, mounted on nodes for
    /// --instance-types-file. It must exist in the namespace of the controller's ServiceAccount or
    /// of the kubeconfig's context.
    #[arg(long, env = "DISKPLUGIN_INSTANCE_TYPES_CONFIG_MAP", value_parser = name)]
    pub instance_types_config_map: Option<String>,

    /// Write events: on a PersistentVolumeClaim if disks are out of stock or its disk is in use elsewhere, on a Node if
    /// its attachment limit is reached.
    #[arg(long, env = "DISKPLUGIN_EVENTS")]
    pub events: bool,

    /// Key of the startup taint of nodes, such as diskplugin.csi.example/agent-not-ready. The controller removes the
    /// taint, whatever its effect, once the driver is registered on the node.
    #[arg(long, env = "DISKPLUGIN_STARTUP_TAINT", value_parser = key)]
    pub startup_taint: Option<String>,

    /// How often disks and snapshots that Kubernetes does not use are counted for /metrics, as by diskplugin orphans
    /// with --min-age 1h: lists all disks, snapshots and volumes. 0s means never.
    #[arg(long, env = "DISKPLUGIN_METRICS_ORPHANS_INTERVAL", default_value = "0s", value_parser = interval)]
    pub metrics_orphans_interval: Interval,

    /// kubeconfig for a controller that does not run in a pod. Default: the ServiceAccount token of the pod. The API
    /// server is called only if one of the flags above is set.
    #[arg(long, env = "DISKPLUGIN_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
}

impl KubernetesArgs {
    /// The flags of features of the leader that are set and need the API server.
    #[must_use]
    pub fn enabled(&self) -> Vec<&'static str> {
        let flags = [
            (self.instance_types_config_map.is_some(), "--instance-types-config-map"),
            (self.events, "--events"),
            (self.startup_taint.is_some(), "--startup-taint"),
            (self.metrics_orphans_interval.0.is_some(), "--metrics-orphans-interval"),
        ];
        let set = flags.into_iter().filter(|(set, _)| *set);
        set.map(|(_, flag)| flag).collect()
    }
}

/// An object name: a DNS subdomain (RFC 1123).
pub(super) fn name(text: &str) -> Result<String, String> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = text.len() <= 253 && text.chars().all(is_inner) && text.starts_with(is_end) && text.ends_with(is_end);
    match fits {
        true => Ok(text.to_owned()),
        false => Err(
            "allowed: lower-case letters, digits, - and ., at most 253, with a letter or digit at both ends".to_owned(),
        ),
    }
}

/// A taint key: a name of up to 63 letters, digits, `-`, `_` and `.`, optionally after a domain prefix and `/`.
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
            "allowed: the key of a taint, such as diskplugin.csi.example/agent-not-ready, without value and effect"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_taint_keys_follow_the_rules_of_kubernetes() {
        for good in ["a", "disks-instance-types", "a.b-1"] {
            assert!(name(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "a_b", "-a", "a.", "a/b", &"a".repeat(254)] {
            assert!(name(bad).is_err(), "{bad}");
        }
        for good in ["not-ready", "diskplugin.csi.example/agent-not-ready", "A_b.c"] {
            assert!(key(good).is_ok(), "{good}");
        }
        for bad in ["", "/a", "a/", "x/y/z", "a:NoExecute", "a=b", "é", &"a".repeat(64)] {
            assert!(key(bad).is_err(), "{bad}");
        }
    }
}
