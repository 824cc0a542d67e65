use std::fmt;
use std::str::FromStr;

use super::error::{Error, Result};
use super::limits;
use crate::disk::{Cursor, InvalidCursor};

#[derive(Debug, Clone, Default)]
pub(crate) struct PageRequest {
    /// The page begins after this item; `None` for the first page.
    pub(crate) after: Option<Token>,
    /// `None`: as many as fit into a message.
    pub(crate) max_entries: Option<usize>,
}

/// A `starting_token`: the cursor of the last item and the number of the cached listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) cursor: Cursor,
    pub(crate) listing: Option<u64>,
}

impl FromStr for Token {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (cursor, listing) = match text.rsplit_once('@') {
            Some((cursor, listing)) => (cursor, listing.parse().ok()),
            None => (text, None),
        };
        let invalid = || Error::token(&format!("{text:?}"));
        let cursor = cursor.parse().map_err(|_: InvalidCursor| invalid())?;
        let token = Self { cursor, listing };
        // The driver prints each position in one way, so that another text is not its token.
        if token.to_string() != text {
            return Err(invalid());
        }
        Ok(token)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cursor)?;
        match self.listing {
            Some(listing) => write!(f, "@{listing}"),
            None => Ok(()),
        }
    }
}

/// CSI: `max_entries` 0 means no limit.
pub(crate) fn page(max_entries: i32, token: &str) -> Result<PageRequest> {
    let negative = |_| Error::unsupported("max_entries", format!("{max_entries} is negative"));
    let max_entries = usize::try_from(max_entries).map_err(negative)?;
    let after = match token {
        "" => None,
        token if token.len() > limits::MAX_STRING => {
            return Err(Error::token(&format!("of {} bytes", token.len())));
        }
        token => Some(token.parse()?),
    };
    Ok(PageRequest {
        after,
        max_entries: (max_entries > 0).then_some(max_entries),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_may_have_the_number_of_its_listing() {
        for text in ["2024-01-01T00:00:00Z/d-1@7", "2024-01-01T00:00:00Z/d-1"] {
            let token: Token = text.parse().unwrap();
            assert_eq!(token.to_string(), text);
        }
        for text in [
            "x@1",
            "2024-01-01T00:00:00Z/d-1@",
            "2024-01-01T00:00:00Z/d-1@x",
            "2024-01-01T00:00:00Z/d-1@+7",
            "2024-01-01T01:00:00+01:00/d-1",
        ] {
            let refused = text.parse::<Token>().unwrap_err();
            assert_eq!(refused, Error::token(&format!("{text:?}")));
        }
    }
}
