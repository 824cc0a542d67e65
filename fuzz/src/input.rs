//! Splits the bytes of an input into the values that a target needs.

/// The bytes that are left.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next byte; 0 at the end.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// The bytes before the next line feed.
    pub fn line(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == b'\n');
        let (line, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest.get(1..).unwrap_or_default();
        line
    }

    /// As [`Self::line`], if it is UTF-8.
    pub fn text_line(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.line()).ok()
    }
}

/// Pairs of lines `key=value`.
pub fn pairs(data: &[u8]) -> Option<Vec<(String, String)>> {
    let text = std::str::from_utf8(data).ok()?;
    let pair = |line: &str| {
        let (key, value) = line.split_once('=')?;
        Some((key.to_owned(), value.to_owned()))
    };
    Some(text.lines().filter_map(pair).collect())
}
