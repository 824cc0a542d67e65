//! Paging: by page number with a total, or by opaque tokens that expire and come with a meaningless
//! total.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeInclusive};

use super::api_error::ApiError;
use super::distribution::after;
use super::pages::Cursor;
use super::params::Params;
use super::response::Listing;
use super::world::World;

const MAX_BY_NUMBER: u64 = 100;
const DEFAULT: u64 = 10;

/// The range of rows that one page needs.
#[derive(Debug)]
pub(crate) struct PageBounds {
    /// The page starts after this ID.
    after: Option<String>,
    /// Maximum number of rows to collect.
    pub(crate) limit: usize,
}

impl PageBounds {
    pub(crate) fn is_after_cursor(&self, id: &str) -> bool {
        self.after.as_deref().is_none_or(|after| id > after)
    }

    /// The IDs after the cursor.
    pub(crate) fn ids_after_cursor<'a, T>(
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

/// The range of rows that a call can return. A page by number needs all rows, for its total.
pub(crate) fn bounds(world: &World, params: &Params, sizes: RangeInclusive<u64>) -> Result<PageBounds, ApiError> {
    let size: Option<u64> = params.parsed("MaxResults")?;
    let token = params.get("NextToken");
    if size.is_none() && token.is_none() {
        let (after, limit) = (None, usize::MAX);
        return Ok(PageBounds { after, limit });
    }
    let size = size.unwrap_or(DEFAULT).clamp(*sizes.start(), *sizes.end());
    let cursor = token.and_then(|token| world.pages.cursors.get(token));
    // One more row shows whether another page follows.
    let limit = usize::try_from(size).unwrap_or(usize::MAX);
    Ok(PageBounds {
        after: cursor.map(|cursor| cursor.last.clone()),
        limit: limit.saturating_add(1),
    })
}

/// Returns one page of the rows, which are sorted by ID.
pub(crate) fn page<T>(
    world: &mut World,
    params: &Params,
    sizes: RangeInclusive<u64>,
    mut rows: Vec<(String, T)>,
) -> Result<Listing<T>, ApiError> {
    let size: Option<u64> = params.parsed("MaxResults")?;
    let token = params.get("NextToken");
    let cursor = token.and_then(|token| world.pages.cursors.get(token));
    let returned = cursor.map_or(0, |cursor| {
        rows.retain(|(id, _)| *id > cursor.last);
        cursor.returned
    });
    // The documents limit filtered lists to that many rows.
    if params.get("Tag.1.Key").is_some() || params.get("ResourceGroupId").is_some() {
        rows.truncate(world.config.rules.filtered_rows.saturating_sub(returned));
    }
    if size.is_some() || token.is_some() {
        let size = size.unwrap_or(DEFAULT).clamp(*sizes.start(), *sizes.end());
        return page_by_token(world, params, token, size, rows);
    }
    let size = params.parsed("PageSize")?.unwrap_or(DEFAULT);
    let size = size.clamp(1, MAX_BY_NUMBER);
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
    world: &mut World,
    params: &Params,
    token: Option<&str>,
    size: u64,
    rows: Vec<(String, T)>,
) -> Result<Listing<T>, ApiError> {
    let now = world.now;
    world.pages.cursors.retain(|_, cursor| cursor.expires > now);
    let query = query(params);
    let returned = match token {
        None => 0,
        Some(token) => match world.pages.cursors.get(token) {
            Some(cursor) if cursor.query == query => cursor.returned,
            _ => return Err(ApiError::invalid("NextToken")),
        },
    };
    let mut rest = rows.into_iter();
    let take = usize::try_from(size).unwrap_or(usize::MAX);
    let page: Vec<(String, T)> = rest.by_ref().take(take).collect();
    let last = page.last().map(|(id, _)| id.clone());
    let next = match last.filter(|_| rest.next().is_some()) {
        None => None,
        Some(last) => {
            let token = format!("AAAAA{}", world.rng.word(40));
            let expires = after(now, world.config.rules.page_memory);
            let cursor = Cursor {
                last,
                returned: returned + page.len(),
                query,
                expires,
            };
            world.pages.cursors.insert(token.clone(), cursor);
            Some(token)
        }
    };
    Ok(Listing {
        rows: page.into_iter().map(|(_, row)| row).collect(),
        next,
        total: world.rng.below(1000),
        page_number: 0,
        page_size: size,
    })
}

fn query(params: &Params) -> String {
    let filters = params.map().iter();
    filters
        .filter(|(name, _)| !matches!(name.as_str(), "NextToken" | "MaxResults"))
        .map(|(name, value)| format!("{name}={value};"))
        .collect()
}
