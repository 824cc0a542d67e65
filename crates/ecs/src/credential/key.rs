//! The characters of keys in files and environment variables. Editors, shells and templates add others; the cloud would
//! report them as an unknown key or a wrong signature.

use super::CredentialError;

/// Besides letters and digits: an access key ID. Temporary ones have a dot.
pub(super) const ID: &str = "-_.";
/// Besides letters and digits: a secret or a token, which can be Base64.
pub(super) const SECRET: &str = "-_.+/=";

/// The key `name` in `place`, without line ends, blanks and byte-order marks around it; none if it is empty.
///
/// # Errors
/// It has a character other than ASCII letters, digits and `punctuation`.
pub(super) fn parse(
    place: &str,
    name: &str,
    bytes: &[u8],
    punctuation: &'static str,
) -> Result<Option<String>, CredentialError> {
    let invalid = |found: String| CredentialError::InvalidKey {
        place: place.to_owned(),
        name: name.to_owned(),
        found,
        punctuation,
    };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        invalid(format!(
            "byte 0x{:02X} at position {}, which is not UTF-8",
            bytes[at],
            at + 1
        ))
    })?;
    let is_padding = |c: char| c.is_whitespace() || c == '\u{feff}';
    let key = text.trim_matches(is_padding);
    let padding = text.chars().take_while(|c| is_padding(*c)).count();
    let mut chars = key.chars().zip(padding + 1..);
    if let Some((char, position)) = chars.find(|(c, _)| !c.is_ascii_alphanumeric() && !punctuation.contains(*c)) {
        return Err(invalid(format!("U+{:04X} at position {position}", u32::from(char))));
    }
    Ok((!key.is_empty()).then(|| key.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_stripped_and_other_characters_are_named_by_position_and_code_point() {
        let utf16 =
            |text: &str, to_bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(to_bytes).collect::<Vec<_>>();
        let (little, big) = (u16::to_le_bytes, u16::to_be_bytes);
        for (written, read) in [
            (b"LTAI5tKEY".to_vec(), Ok(Some("LTAI5tKEY"))),
            (b"STS.a-b_1".to_vec(), Ok(Some("STS.a-b_1"))),
            (b"LTAI\n".to_vec(), Ok(Some("LTAI"))),
            (b"LTAI\r\n\r\n".to_vec(), Ok(Some("LTAI"))),
            (b" \t LTAI \t ".to_vec(), Ok(Some("LTAI"))),
            ("\u{feff}LTAI".into(), Ok(Some("LTAI"))),
            ("\u{feff}\r\n LTAI\u{a0}\u{feff}".into(), Ok(Some("LTAI"))),
            ("\u{3000}LTAI\u{2028}".into(), Ok(Some("LTAI"))),
            (Vec::new(), Ok(None)),
            (" \r\n\u{feff}\t".into(), Ok(None)),
            ("\u{200b}LTAI".into(), Err("U+200B at position 1")),
            ("\u{feff}\u{200b}LTAI".into(), Err("U+200B at position 2")),
            ("LTAI\u{200d}".into(), Err("U+200D at position 5")),
            ("LT\u{a0}AI".into(), Err("U+00A0 at position 3")),
            ("LT\u{feff}AI".into(), Err("U+FEFF at position 3")),
            ("\"LTAI\"".into(), Err("U+0022 at position 1")),
            ("'LTAI'".into(), Err("U+0027 at position 1")),
            ("\u{201c}LTAI\u{201d}".into(), Err("U+201C at position 1")),
            ("LTAI\0".into(), Err("U+0000 at position 5")),
            ("LT\tAI".into(), Err("U+0009 at position 3")),
            ("\nLT AI".into(), Err("U+0020 at position 4")),
            ("LTAI\nLTAI".into(), Err("U+000A at position 5")),
            ("ＬTAI".into(), Err("U+FF2C at position 1")),
            ("LT\u{410}I".into(), Err("U+0410 at position 3")),
            ("TFRBSQo=".into(), Err("U+003D at position 8")),
            ("access-key-id: LTAI".into(), Err("U+003A at position 14")),
            ("${KEY}".into(), Err("U+0024 at position 1")),
            (b"LTAI\xa0".to_vec(), Err("byte 0xA0 at position 5, which is not UTF-8")),
            (
                utf16("\u{feff}LTAI", little),
                Err("byte 0xFF at position 1, which is not UTF-8"),
            ),
            (
                utf16("\u{feff}LTAI", big),
                Err("byte 0xFE at position 1, which is not UTF-8"),
            ),
            (utf16("LTAI", little), Err("U+0000 at position 2")),
            (utf16("LTAI", big), Err("U+0000 at position 1")),
        ] {
            let parsed = parse("the Secret", "access-key-id", &written, ID);
            let Err(found) = read else {
                assert_eq!(parsed.unwrap().as_deref(), read.unwrap(), "{written:?}");
                continue;
            };
            assert_eq!(
                parsed.unwrap_err().to_string(),
                format!(
                    "access-key-id in the Secret has {found}; allowed are ASCII letters, digits and -_.: write it again"
                ),
                "{written:?}"
            );
        }
    }

    #[test]
    fn a_secret_and_a_token_can_be_base64() {
        let parsed = |text: &str| parse("p", "n", text.as_bytes(), SECRET).map_err(|error| error.to_string());
        assert_eq!(parsed("CAIS+a/b-c_d==\n"), Ok(Some("CAIS+a/b-c_d==".to_owned())));
        assert!(parsed("hunter2%3D").unwrap_err().contains("U+0025 at position 8;"));
    }
}
