//! The name of the driver.

/// The name of the driver unless `--driver-name` is set.
pub const DRIVER: &str = "diskplugin.csi.example";

const LONGEST: usize = 63;
const RULE: &str = "at most 63 lower-case letters, digits, '-' and '.', with a letter or digit at the start and end of \
                    each part";

ecs::id!(
    /// The name under which a driver is registered, and which its classes name: in the notation of domain names, at
    /// most 63 characters (CSI, `GetPluginInfoResponse.name`), in lower case, as the `CSIDriver` object of Kubernetes
    /// requires.
    DriverName, "driver name", RULE, |text| is_domain(text, LONGEST)
);

impl Default for DriverName {
    fn default() -> Self {
        Self(DRIVER.to_owned())
    }
}

/// Whether a text is a domain name (RFC 1123) in lower case.
pub(crate) fn is_domain(text: &str, longest: usize) -> bool {
    text.len() <= longest && text.split('.').all(is_label)
}

/// Whether a text is a part of a domain name in lower case, of any length.
pub(crate) fn is_label(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(plain) && text.ends_with(plain) && text.chars().all(|c| plain(c) || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_syntax_of_a_domain_in_lower_case() {
        for text in ["diskplugin.csi.example", "a", "second-disk.example.com", "0.1"] {
            assert_eq!(text.parse::<DriverName>().unwrap().as_str(), text);
        }
        let long = "a".repeat(64);
        for text in ["", ".a", "a.", "a..b", "-a", "a-", "A.b", "a/b", "a b", &long] {
            assert!(text.parse::<DriverName>().is_err(), "{text}");
        }
        assert_eq!(DriverName::default(), DRIVER.parse().unwrap());
    }
}
