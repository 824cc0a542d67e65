//! Pages of listings. Each page fits into a gRPC message. The items of a listing are cached for its next pages, so that
//! a complete listing reads everything once. Without the cached listing, as after a restart, the next page reads again
//! and continues after the last item.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prost::Message;
use prost::encoding::encoded_len_varint;
use tokio::time::Instant;
use tonic::Status;

use crate::base::{Tasks, lock};
use crate::csi::request::page::{PageRequest, Token};
use crate::disk::{self, Cursor};

/// Maximum size of the entries of a page: with the token, less than 3 MiB. gRPC's default limit of a message is 4 MiB.
const MAX_PAGE_BYTES: usize = (3 << 20) - (1 << 10);

/// How long a listing is cached after the last request for one of its pages.
const CACHE_TTL: Duration = Duration::from_mins(5);

const MAX_LISTINGS: usize = 4;
const MAX_CACHED_BYTES: usize = 32 << 20;

/// An item of a listing: its position and its encoded entry. 60,000 volumes need 12 MB.
#[derive(Debug, Clone)]
pub(super) struct Item {
    cursor: Cursor,
    entry: Box<[u8]>,
}

impl Item {
    pub(super) fn new(cursor: Cursor, entry: &impl Message) -> Self {
        Self {
            cursor,
            entry: entry.encode_to_vec().into(),
        }
    }

    /// Size in a message, with field tag and length.
    fn size(&self) -> usize {
        let length = self.entry.len();
        1 + encoded_len_varint(u64::try_from(length).unwrap_or(u64::MAX)) + length
    }
}

/// The cache of listings in progress. Clones share it.
#[derive(Debug, Clone, Default)]
pub(in crate::csi) struct Listings(Arc<Mutex<Cache>>);

#[derive(Debug, Default)]
struct Cache {
    last_number: u64,
    listings: VecDeque<Listing>,
}

#[derive(Debug)]
struct Listing {
    number: u64,
    subject: String,
    items: Arc<Vec<Item>>,
    bytes: usize,
    expires: Instant,
}

impl Listings {
    /// The entries of a page of the items that `read` returns, which are sorted by cursor, and the token of the next
    /// page, which is empty on the last one.
    pub(super) async fn page<E: Message + Default>(
        &self,
        subject: &str,
        request: PageRequest,
        read: impl Future<Output = disk::Result<Vec<Item>>>,
    ) -> Result<(Vec<E>, String), Status> {
        let after = request.after;
        let number = after.as_ref().and_then(|token| token.listing);
        let cached = number.and_then(|number| self.find(number, subject));
        let number = number.filter(|_| cached.is_some());
        let items = match cached {
            Some(cached) => cached,
            None => Arc::new(read.await?),
        };
        let begin = match &after {
            Some(token) => items.partition_point(|item| item.cursor <= token.cursor),
            None => 0,
        };
        let rest = &items[begin..];
        let page = &rest[..page_length(rest, request.max_entries)];
        let entries = page.iter().map(|item| E::decode(&*item.entry));
        let entries = entries.collect::<Result<Vec<E>, _>>();
        let entries = entries.map_err(|error| Status::internal(error.to_string()))?;
        let next_token = match page.last() {
            Some(last) if page.len() < rest.len() => {
                let cursor = last.cursor.clone();
                let listing = number.or_else(|| self.insert(subject, &items));
                Token { cursor, listing }.to_string()
            }
            _ => {
                self.remove(number);
                String::new()
            }
        };
        Ok((entries, next_token))
    }

    /// Removes a deleted volume or snapshot from all further pages.
    pub(in crate::csi) fn mark_deleted(&self, id: &str) {
        for listing in &mut lock(&self.0).listings {
            if let Some(at) = listing.items.iter().position(|item| item.cursor.id() == id) {
                Arc::make_mut(&mut listing.items).remove(at);
            }
        }
    }

    fn find(&self, number: u64, subject: &str) -> Option<Arc<Vec<Item>>> {
        let mut cache = lock(&self.0);
        cache.expire();
        let listing = cache
            .listings
            .iter_mut()
            .find(|listing| listing.number == number && listing.subject == subject)?;
        listing.expires = Instant::now() + CACHE_TTL;
        Some(Arc::clone(&listing.items))
    }

    /// Caches a listing for its next pages, and evicts the oldest ones. `None` if it is too large.
    fn insert(&self, subject: &str, items: &Arc<Vec<Item>>) -> Option<u64> {
        let sizes = items.iter().map(|item| size_of::<Item>() + item.size());
        let bytes = sizes.sum();
        if bytes > MAX_CACHED_BYTES {
            return None;
        }
        let mut cache = lock(&self.0);
        cache.expire();
        let cached_bytes = |cache: &Cache| cache.listings.iter().map(|l| l.bytes).sum::<usize>();
        while cache.listings.len() >= MAX_LISTINGS || cached_bytes(&cache) + bytes > MAX_CACHED_BYTES {
            cache.listings.pop_front();
        }
        cache.last_number += 1;
        let number = cache.last_number;
        cache.listings.push_back(Listing {
            number,
            subject: subject.to_owned(),
            items: Arc::clone(items),
            bytes,
            expires: Instant::now() + CACHE_TTL,
        });
        drop(cache);
        self.expire_later(number);
        Some(number)
    }

    /// Removes an abandoned listing in the background. Shutdown does not wait for it.
    fn expire_later(&self, number: u64) {
        let cache = Arc::downgrade(&self.0);
        let expiry = move || {
            let listings = Self(cache.upgrade()?);
            let mut cache = lock(&listings.0);
            cache.expire();
            let listing = cache.listings.iter().find(|l| l.number == number);
            listing.map(|listing| listing.expires)
        };
        Tasks::default().spawn(async move {
            while let Some(expires) = expiry() {
                tokio::time::sleep_until(expires).await;
            }
        });
    }

    fn remove(&self, number: Option<u64>) {
        let mut cache = lock(&self.0);
        cache.listings.retain(|listing| Some(listing.number) != number);
    }
}

impl Cache {
    fn expire(&mut self) {
        let now = Instant::now();
        self.listings.retain(|listing| listing.expires > now);
    }
}

/// The number of items on the next page, at least one.
fn page_length(items: &[Item], max_entries: Option<usize>) -> usize {
    let mut bytes = 0;
    let fits = |item: &&Item| {
        bytes += item.size();
        bytes <= MAX_PAGE_BYTES
    };
    let count = items.iter().take_while(fits).count().max(1);
    count.min(max_entries.unwrap_or(count)).min(items.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(count: usize, size: usize) -> Vec<Item> {
        let item = |n: usize| Item {
            cursor: format!("2024-01-01T00:00:00Z/d-{n:06}").parse().unwrap(),
            entry: prost::bytes::Bytes::from(vec![7; size]).encode_to_vec().into(),
        };
        (0..count).map(item).collect()
    }

    /// Lists all pages. Returns their lengths and the number of reads.
    async fn list(listings: &Listings, items: fn() -> Vec<Item>) -> (Vec<usize>, usize) {
        let (mut pages, mut reads) = (Vec::new(), 0);
        let mut request = PageRequest::default();
        loop {
            let read = async {
                reads += 1;
                Ok(items())
            };
            let (entries, next_token) = listings.page("test", request.clone(), read).await.unwrap();
            let entries: Vec<prost::bytes::Bytes> = entries;
            pages.push(entries.len());
            if next_token.is_empty() {
                return (pages, reads);
            }
            request.after = Some(next_token.parse().unwrap());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_listing_is_read_once_and_removed_after_its_last_page() {
        let listings = Listings::default();
        let (pages, reads) = list(&listings, || items(70_000, 110)).await;
        assert_eq!((pages.iter().sum::<usize>(), reads), (70_000, 1));
        assert!(pages.len() > 2, "{pages:?}");
        assert!(lock(&listings.0).listings.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_listing_that_is_too_large_to_cache_is_read_for_each_page() {
        let listings = Listings::default();
        let (pages, reads) = list(&listings, || items(20, 2 << 20)).await;
        assert_eq!((pages, reads), (vec![1; 20], 20));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deleted_item_is_not_on_further_pages() {
        let listings = Listings::default();
        let number = listings.insert("test", &Arc::new(items(3, 10))).unwrap();
        let reader = listings.find(number, "test").unwrap();
        listings.mark_deleted("d-000001");
        listings.mark_deleted("d-unknown");
        let left = listings.find(number, "test").unwrap();
        let left: Vec<_> = left.iter().map(|item| item.cursor.id()).collect();
        assert_eq!(left, ["d-000000", "d-000002"]);
        assert_eq!(reader.len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_cache_is_limited_and_abandoned_listings_expire() {
        let listings = Listings::default();
        let numbers: Vec<_> = (0..6)
            .map(|_| listings.insert("test", &Arc::new(items(3, 10))).unwrap())
            .collect();
        assert!(listings.find(numbers[1], "test").is_none());
        assert!(listings.find(numbers[2], "test").is_some());
        assert!(listings.find(numbers[2], "other").is_none());
        tokio::time::sleep(CACHE_TTL / 2).await;
        assert!(listings.find(numbers[5], "test").is_some());
        tokio::time::sleep(CACHE_TTL / 2 + Duration::from_secs(1)).await;
        let left: Vec<_> = lock(&listings.0).listings.iter().map(|l| l.number).collect();
        assert_eq!(left, [numbers[5]]);
        tokio::time::sleep(CACHE_TTL).await;
        assert!(lock(&listings.0).listings.is_empty());
    }
}
