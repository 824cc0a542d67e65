//! The name of the driver.

use std::fmt;
use std::str::FromStr;

/// The name of the driver unless `--driver-name` is set.
pub const DRIVER: &str = "diskplugin.csi.example";

/// The name under which a driver is registered, and which its classes name: in the notation of domain names, at most 63
/// characters (CSI, `GetPluginInfoResponse.name`), in lower case, as the `CSIDriver` object of Kubernetes requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverName(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a driver name; allowed: at most 63 lower-case letters, digits, '-' and '.', with a letter or digit at the \
     start and end of each part"
)]
pub struct InvalidDriverName(String);

const LONGEST: usize = 63;

impl DriverName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for DriverName {
    fn default() -> Self {
        Self(DRIVER.to_owned())
    }
}

impl FromStr for DriverName {
    type Err = InvalidDriverName;

    fn from_str(text: &str) -> Result<Self, InvalidDriverName> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_part =
            |part: &str| part.starts_with(plain) && part.ends_with(plain) && part.chars().all(|c| plain(c) || c == '-');
        if text.len() <= LONGEST && text.split('.').all(is_part) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidDriverName(text.to_owned()))
        }
    }
}

impl fmt::Display for DriverName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
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
