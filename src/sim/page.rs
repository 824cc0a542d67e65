//! Paging: page numbers with a total, or opaque tokens that expire and come with a useless total.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeInclusive};

use jiff::Timestamp;

use super::params::Params;
use super::reply::{Listing, Refusal};
use super::spread::after;
use super::world::World;

/// The cursors behind the tokens that are out.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    cursors: BTreeMap<String, Cursor>,
}

#[derive(Debug)]
struct Cursor {
    /// The list goes on after this id, whatever came or went meanwhile.
    last: String,
    /// How many rows the pages before had.
    given: usize,
    /// A token is good only for the query that it came from.
    query: String,
    expires: Timestamp,
}

/// Most rows of a page by number, of every list.
const MOST_BY_NUMBER: u64 = 100;
/// Rows of a page when the caller does not say.
const DEFAULT: u64 = 10;

/// How far a list must be walked for one page.
#[derive(Debug)]
pub(crate) struct Reach {
    /// The page goes on after this id.
    after: Option<String>,
    /// No more rows than these matter.
    pub(crate) most: usize,
}

impl Reach {
    pub(crate) fn is_beyond(&self, id: &str) -> bool {
        self.after.as_deref().is_none_or(|after| id > after)
    }

    /// The ids that can be on the page, without a walk over those that cannot.
    pub(crate) fn beyond<'a, T>(
        &self,
        rows: &'a BTreeMap<String, T>,
    ) -> impl Iterator<Item = &'a String> + use<'a, T> {
        let after = match &self.after {
            Some(last) => Bound::Excluded(last.as_str()),
            None => Bound::Unbounded,
        };
        let rows = rows.range::<str, _>((after, Bound::Unbounded));
        rows.map(|(id, _)| id)
    }
}

impl World {
    /// What of a list a call can show. A page by number needs all, for its total.
    pub(crate) fn reach(
        &self,
        params: &Params,
        sizes: RangeInclusive<u64>,
    ) -> Result<Reach, Refusal> {
        let size: Option<u64> = params.parsed("MaxResults")?;
        let token = params.get("NextToken");
        if size.is_none() && token.is_none() {
            let (after, most) = (None, usize::MAX);
            return Ok(Reach { after, most });
        }
        let size = size.unwrap_or(DEFAULT).clamp(*sizes.start(), *sizes.end());
        let cursor = token.and_then(|token| self.pages.cursors.get(token));
        // One row more tells whether there is another page.
        let most = usize::try_from(size).unwrap_or(usize::MAX);
        Ok(Reach {
            after: cursor.map(|cursor| cursor.last.clone()),
            most: most.saturating_add(1),
        })
    }

    /// Cuts one page out of all rows, or of all after its token, which are in the order of their ids.
    pub(crate) fn page<T>(
        &mut self,
        params: &Params,
        sizes: RangeInclusive<u64>,
        mut rows: Vec<(String, T)>,
    ) -> Result<Listing<T>, Refusal> {
        let size: Option<u64> = params.parsed("MaxResults")?;
        let token = params.get("NextToken");
        let cursor = token.and_then(|token| self.pages.cursors.get(token));
        let given = cursor.map_or(0, |cursor| {
            rows.retain(|(id, _)| *id > cursor.last);
            cursor.given
        });
        // Beyond that, the documents say, one has to list by other means.
        if params.get("Tag.1.Key").is_some() || params.get("ResourceGroupId").is_some() {
            rows.truncate(self.config.rules.filtered_rows.saturating_sub(given));
        }
        if size.is_some() || token.is_some() {
            let size = size.unwrap_or(DEFAULT).clamp(*sizes.start(), *sizes.end());
            return self.page_by_token(params, token, size, rows);
        }
        let size = params.parsed("PageSize")?.unwrap_or(DEFAULT);
        let size = size.clamp(1, MOST_BY_NUMBER);
        let number = params.parsed("PageNumber")?.unwrap_or(1u64).max(1);
        let total = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        let skip = usize::try_from((number - 1).saturating_mul(size)).unwrap_or(usize::MAX);
        let take = usize::try_from(size).unwrap_or(usize::MAX);
        let rows = rows.into_iter().map(|(_, row)| row);
        Ok(Listing {
            rows: rows.skip(skip).take(take).collect(),
            next: None,
            total,
            page_number: number,
            page_size: size,
        })
    }

    fn page_by_token<T>(
        &mut self,
        params: &Params,
        token: Option<&str>,
        size: u64,
        rows: Vec<(String, T)>,
    ) -> Result<Listing<T>, Refusal> {
        let now = self.now;
        self.pages.cursors.retain(|_, cursor| cursor.expires > now);
        let query = query(params);
        let given = match token {
            None => 0,
            Some(token) => match self.pages.cursors.get(token) {
                Some(cursor) if cursor.query == query => cursor.given,
                _ => return Err(Refusal::invalid("NextToken")),
            },
        };
        let mut rest = rows.into_iter();
        let take = usize::try_from(size).unwrap_or(usize::MAX);
        let page: Vec<(String, T)> = rest.by_ref().take(take).collect();
        let last = page.last().map(|(id, _)| id.clone());
        let next = match last.filter(|_| rest.next().is_some()) {
            None => None,
            Some(last) => {
                let token = format!("AAAAA{}", self.rng.word(40));
                let expires = after(now, self.config.rules.page_memory);
                let cursor = Cursor {
                    last,
                    given: given + page.len(),
                    query,
                    expires,
                };
                self.pages.cursors.insert(token.clone(), cursor);
                Some(token)
            }
        };
        Ok(Listing {
            rows: page.into_iter().map(|(_, row)| row).collect(),
            next,
            total: self.rng.below(1000),
            page_number: 0,
            page_size: size,
        })
    }
}

fn query(params: &Params) -> String {
    let filters = params.map().iter();
    filters
        .filter(|(name, _)| !matches!(name.as_str(), "NextToken" | "MaxResults"))
        .map(|(name, value)| format!("{name}={value};"))
        .collect()
}
