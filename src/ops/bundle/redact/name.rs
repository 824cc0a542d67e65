//! Names of fields that hold secrets.

const MARKS: [&str; 14] = [
    "cookie",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "token",
    "accesskey",
    "authorization",
    "signature",
    "privatekey",
    "apikey",
    "clientkeydata",
    "clientcertificatedata",
];

/// Ends of names that hold a secret. Longer names describe it: `credentialProvider`, `encryptionKeyId`.
const ENDS: [&str; 3] = ["credential", "credentials", "encryptionkey"];

/// Parts of the names of secrets that can have several words.
const PHRASES: [&str; 4] = ["password", "passwd", "passphrase", "pwd"];

/// Names in texts that are written with blanks.
const SPACED: [&str; 6] = [
    "access key",
    "access key id",
    "api key",
    "encryption key",
    "private key",
    "secret key",
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
const SETTINGS: [&str; 4] = [
    "credentials",
    "diskplugincredentials",
    "httpauthorization",
    "diskpluginhttpauthorization",
];

/// Variables of shells that hold the working directory.
const DIRECTORIES: [&str; 2] = ["PWD", "OLDPWD"];

/// Resources of Kubernetes, which rules of RBAC list.
const RESOURCES: [&str; 3] = ["secrets", "tokenrequests", "tokenreviews"];

/// Whether the value of a field, flag, header or variable with this name is a secret.
#[must_use]
pub fn is_sensitive(name: &str) -> bool {
    let plain = plain(name);
    let is_marked = MARKS.iter().any(|mark| plain.contains(mark))
        || ENDS.iter().any(|end| plain.ends_with(end))
        || ends_with_pass(name);
    is_marked
        && !REFERENCES.iter().any(|end| plain.ends_with(end))
        && !SETTINGS.contains(&plain.as_str())
        && !DIRECTORIES.contains(&name)
}

/// Whether the value of this header is more than one word.
pub(super) fn is_header(name: &str) -> bool {
    let plain = plain(name);
    plain.contains("authorization") || plain.ends_with("cookie")
}

/// Whether the value of this field can be more than one word.
pub(super) fn is_phrase(name: &str) -> bool {
    let plain = plain(name);
    PHRASES.iter().any(|part| plain.contains(part)) || ends_with_pass(name)
}

/// Whether a list of strings with this one is not a name and its value.
pub(super) fn is_resource(name: &str) -> bool {
    RESOURCES.contains(&name)
}

/// The length of the name with blanks that the text ends with.
pub(super) fn spaced(text: &str) -> Option<usize> {
    let mut known = SPACED.iter().map(|name| name.len());
    known.find(|length| {
        let start = text.len().checked_sub(*length);
        let Some((before, name)) = start.and_then(|start| text.split_at_checked(start)) else {
            return false;
        };
        SPACED.iter().any(|known| name.eq_ignore_ascii_case(known))
            && !before.ends_with(|c: char| c.is_ascii_alphanumeric())
    })
}

fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether the last word is `pass`: `db_pass` and `dbPass`, not `bypass`.
fn ends_with_pass(name: &str) -> bool {
    let mut words = name.rsplit(|c: char| !c.is_ascii_alphanumeric());
    let last = words.next().unwrap_or_default();
    last.eq_ignore_ascii_case("pass") || last.ends_with("Pass")
}
