//! The proxy variables that the HTTP client uses, without the credentials in them.

use crate::ops::doctor::Check;

const VARIABLES: [&str; 8] = [
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

pub(super) fn check(variable: impl Fn(&str) -> Option<String>) -> Check {
    let set = VARIABLES.into_iter().filter_map(|name| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        Some(format!("{name}={}", without_credentials(&value)))
    });
    let set: Vec<_> = set.collect();
    Check::ok(
        "cloud/proxy",
        match set.is_empty() {
            true => "no proxy is set".to_owned(),
            false => format!("requests to the cloud use {}", set.join(", ")),
        },
    )
}

/// The value without user and password, which precede the last `@`.
fn without_credentials(value: &str) -> String {
    let (scheme, rest) = match value.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), value),
    };
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_named_without_credentials() {
        let check = check(|name| match name {
            "HTTPS_PROXY" => Some("http://user:p@ss@proxy:3128".to_owned()),
            "http_proxy" => Some("user:word@other:80".to_owned()),
            _ => None,
        });
        assert_eq!(
            check.found,
            "requests to the cloud use HTTPS_PROXY=http://proxy:3128, http_proxy=other:80"
        );
    }
}
