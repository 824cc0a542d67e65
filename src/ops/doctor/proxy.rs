//! The proxy variables that the HTTP client uses, without the credentials in them.

use super::check::Check;
use crate::base::without_user_info;

const PROXIES: [&str; 3] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"];

pub(super) fn check(variable: impl Fn(&str) -> Option<String>) -> Check {
    let set = |names: &[&str]| {
        let names = names.iter().flat_map(|name| [(*name).to_owned(), name.to_lowercase()]);
        let set = names.filter_map(|name| {
            let value = variable(&name).filter(|value| !value.is_empty())?;
            Some(format!("{name}={}", without_credentials(&value)))
        });
        set.collect::<Vec<_>>().join(", ")
    };
    let (proxies, exceptions) = (set(&PROXIES), set(&["NO_PROXY"]));
    let found = match (proxies.is_empty(), exceptions.is_empty()) {
        (true, _) => "no proxy is set".to_owned(),
        (false, true) => format!("requests to the cloud use {proxies}"),
        (false, false) => format!("requests to the cloud use {proxies}, except for {exceptions}"),
    };
    Check::ok("cloud/proxy", found)
}

/// The value without user and password. Its scheme may be missing.
fn without_credentials(value: &str) -> String {
    match value.contains("://") {
        true => without_user_info(value),
        false => without_user_info(&format!("//{value}"))[2..].to_owned(),
    }
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
        let direct = super::check(|name| (name == "NO_PROXY").then(|| "localhost".to_owned()));
        assert_eq!(direct.found, "no proxy is set");
    }
}
