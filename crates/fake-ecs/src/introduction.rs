//! What a person needs in order to use a fake cloud that serves HTTP.

use std::net::SocketAddr;

use super::cloud::Cloud;
use super::options::{DEFAULT_KEY, DEFAULT_SECRET, Options};

/// Endpoints and credentials of the fake cloud. Only the default secret, which protects nothing, is shown.
#[must_use]
pub fn introduction(cloud: &Cloud, options: &Options, listen: SocketAddr) -> String {
    let endpoint = cloud.endpoint().unwrap_or_default();
    let mut lines = vec![
        format!("fake cloud of region {} at {endpoint}", options.region),
        format!("  zones          {}", options.zones().join(", ")),
        control_path(endpoint, listen),
    ];
    for node in cloud.nodes() {
        lines.push(format!("  node           {} in {}", node.id, node.zone));
        let metadata = cloud.metadata_endpoint(&node.id).unwrap_or_default();
        lines.push(format!("                 --metadata-endpoint {metadata}"));
        if let Some(directory) = cloud.device_dir(&node.id) {
            let directory = directory.display();
            lines.push(format!("                 --device-dir {directory}"));
        }
    }
    let key = match options.access_key_id.expose() {
        DEFAULT_KEY => DEFAULT_KEY,
        _ => "(as given by --access-key-id)",
    };
    let secret = match options.access_key_secret.expose() {
        DEFAULT_SECRET => DEFAULT_SECRET,
        _ => "(as given by --access-key-secret)",
    };
    lines.push(format!("  driver         ACCESS_KEY_ID={key}"));
    lines.push(format!("                 ACCESS_KEY_SECRET={secret}"));
    lines.push(format!("                 --ecs-endpoint {endpoint}"));
    lines.join("\n") + "\n"
}

fn control_path(endpoint: &str, listen: SocketAddr) -> String {
    if !listen.ip().is_loopback() {
        return format!(
            "  control path   not served on {listen}: it has no authentication; listen on a loopback address to use it"
        );
    }
    format!(
        "  state, calls   {endpoint}/_control/state {endpoint}/_control/calls\n  \
         configuration  {endpoint}/_control/config (GET, PATCH)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_path_is_shown_only_if_served() {
        let shown = |listen: &str| control_path("http://x", listen.parse().unwrap());
        assert!(shown("127.0.0.1:8480").contains("http://x/_control/state"));
        assert!(shown("[::1]:8480").contains("\n  configuration  http://x/_control/config"));
        assert!(!shown("0.0.0.0:8480").contains("http://x/_control"));
    }
}
