//! Names of fields that hold secrets.

const MARKS: [&str; 13] = [
    "cookie",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "accesskey",
    "authorization",
    "signature",
    "privatekey",
    "apikey",
    "clientkeydata",
    "clientcertificatedata",
];

/// Ends of names that refer to a secret, or describe one, and do not hold it.
const REFERENCES: [&str; 8] = [
    "file",
    "dir",
    "path",
    "name",
    "namespace",
    "arn",
    "only",
    "required",
];

/// Settings of the driver.
const SETTINGS: [&str; 2] = ["httpauthorization", "diskpluginhttpauthorization"];

/// Whether the value of a field, flag, header or variable with this name is a secret.
#[must_use]
pub fn is_sensitive(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let plain: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    MARKS.iter().any(|mark| plain.contains(mark))
        && !REFERENCES.iter().any(|end| plain.ends_with(end))
        && !SETTINGS.contains(&plain.as_str())
}

/// Whether the value of this header is more than one word.
pub(super) fn is_header(name: &str) -> bool {
    name.to_ascii_lowercase().contains("authorization")
}
