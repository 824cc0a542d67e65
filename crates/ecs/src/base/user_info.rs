//! URLs without the user names and passwords in them, for errors and reports.

/// The text without the user information of its URLs. A password can contain `/` and `@` although a URL must not.
#[must_use]
pub fn without_user_info(text: &str) -> String {
    let mut parts = text.split("//");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_end = |char: char| char.is_whitespace() || "\"'`<>".contains(char);
        let url = part.split(is_end).next().unwrap_or_default();
        let host = url.rfind('@').map_or(0, |at| at + 1);
        shown.push_str("//");
        shown.push_str(&part[host..]);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_user_information_is_removed() {
        for (text, shown) in [
            ("http://user:word@proxy:3128", "http://proxy:3128"),
            ("https://user:w@r/d@proxy/", "https://proxy/"),
            (
                "proxy \"http://user:word@one\" or http://two, mail a@b",
                "proxy \"http://one\" or http://two, mail a@b",
            ),
            ("http://host/path", "http://host/path"),
            ("no URL", "no URL"),
        ] {
            assert_eq!(without_user_info(text), shown);
        }
    }
}
