//! Pages of listings. Each fits into a gRPC message. What a listing has read is kept for the pages that follow, so that a
//! complete listing reads everything once; where it is kept no longer, as after a restart, the next page reads again
//! and goes on behind the last item.

use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prost::Message;
use prost::encoding::encoded_len_varint;
use tokio::time::Instant;
use tonic::Status;

use crate::base::Tasks;
use crate::csi::request::page::{PageRequest, Token};
use crate::disk::Cursor;

/// The entries of a page in bytes: with the token, less than 3 MiB. gRPC's default limit for a message is 4 MiB.
const PAGE: usize = (3 << 20) - (1 << 10);

/// How long a listing is kept after its last page was asked for.
const KEEP: Duration = Duration::from_mins(5);

/// How many listings are kept, and how many bytes in all.
const MOST: usize = 4;
const MOST_BYTES: usize = 32 << 20;

/// An item of a listing: its place, and its entry as it is sent. So 60,000 volumes take 12 MB.
#[derive(Debug)]
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

    /// In a message: with its tag and its length.
    fn size(&self) -> usize {
        let length = self.entry.len();
        1 + encoded_len_varint(u64::try_from(length).unwrap_or(u64::MAX)) + length
    }
}

/// A page.
#[derive(Debug)]
pub(super) struct Page<E> {
    pub(super) entries: Vec<E>,
    /// Empty after the last one.
    pub(super) next_token: String,
}

/// The listings in progress. Clones share them.
#[derive(Debug, Clone, Default)]
pub(in crate::csi) struct Listings(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    next: u64,
    listings: VecDeque<Listing>,
}

#[derive(Debug)]
struct Listing {
    number: u64,
    /// What it lists.
    subject: String,
    items: Arc<Vec<Item>>,
    /// Which of them this process has deleted since.
    deleted: BTreeSet<String>,
    bytes: usize,
    expires: Instant,
}

impl Listings {
    /// The page of what `read` returns: every item, in the order of their places.
    pub(super) async fn page<E: Message + Default>(
        &self,
        subject: &str,
        request: PageRequest,
        read: impl Future<Output = Result<Vec<Item>, Status>>,
    ) -> Result<Page<E>, Status> {
        let after = request.after;
        let number = after.as_ref().and_then(|token| token.listing);
        let kept = number.and_then(|number| self.find(number, subject));
        let number = number.filter(|_| kept.is_some());
        let (items, deleted) = match kept {
            Some(kept) => kept,
            None => (Arc::new(read.await?), BTreeSet::new()),
        };
        let begin = match &after {
            Some(token) => items.partition_point(|item| item.cursor <= token.cursor),
            None => 0,
        };
        let rest = items[begin..].iter();
        let rest: Vec<_> = rest
            .filter(|item| !deleted.contains(item.cursor.id()))
            .collect();
        let page = &rest[..fitting(&rest, request.max_entries)];
        let entries = page.iter().map(|item| E::decode(&*item.entry));
        let entries = entries.collect::<Result<Vec<E>, _>>();
        let entries = entries.map_err(|error| Status::internal(error.to_string()))?;
        let next_token = match page.last() {
            Some(last) if page.len() < rest.len() => {
                let cursor = last.cursor.clone();
                let listing = number.or_else(|| self.keep(subject, &items));
                Token { cursor, listing }.to_string()
            }
            _ => {
                self.forget(number);
                String::new()
            }
        };
        Ok(Page {
            entries,
            next_token,
        })
    }

    /// The volume or snapshot is deleted: no page shows it from now on.
    pub(in crate::csi) fn deleted(&self, id: &str) {
        for listing in &mut self.lock().listings {
            listing.deleted.insert(id.to_owned());
        }
    }

    fn find(&self, number: u64, subject: &str) -> Option<(Arc<Vec<Item>>, BTreeSet<String>)> {
        let mut kept = self.lock();
        kept.expire();
        let listing = kept
            .listings
            .iter_mut()
            .find(|listing| listing.number == number && listing.subject == subject)?;
        listing.expires = Instant::now() + KEEP;
        Some((Arc::clone(&listing.items), listing.deleted.clone()))
    }

    /// Keeps a listing for its next pages, at the cost of the oldest ones; none where it is too large for that.
    fn keep(&self, subject: &str, items: &Arc<Vec<Item>>) -> Option<u64> {
        let sizes = items.iter().map(|item| size_of::<Item>() + item.size());
        let bytes = sizes.sum();
        if bytes > MOST_BYTES {
            return None;
        }
        let mut kept = self.lock();
        kept.expire();
        let held = |kept: &Kept| kept.listings.iter().map(|one| one.bytes).sum::<usize>();
        while kept.listings.len() >= MOST || held(&kept) + bytes > MOST_BYTES {
            kept.listings.pop_front();
        }
        kept.next += 1;
        let number = kept.next;
        kept.listings.push_back(Listing {
            number,
            subject: subject.to_owned(),
            items: Arc::clone(items),
            deleted: BTreeSet::new(),
            bytes,
            expires: Instant::now() + KEEP,
        });
        drop(kept);
        self.expire_later(number);
        Some(number)
    }

    /// Lets go of a listing that nobody goes on with. Nobody waits for that, not even the end of the process.
    fn expire_later(&self, number: u64) {
        let kept = Arc::downgrade(&self.0);
        let expiry = move || {
            let listings = Self(kept.upgrade()?);
            let mut kept = listings.lock();
            kept.expire();
            let listing = kept.listings.iter().find(|one| one.number == number);
            listing.map(|listing| listing.expires)
        };
        Tasks::default().start(async move {
            while let Some(expires) = expiry() {
                tokio::time::sleep_until(expires).await;
            }
        });
    }

    fn forget(&self, number: Option<u64>) {
        let mut kept = self.lock();
        kept.listings
            .retain(|listing| Some(listing.number) != number);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn expire(&mut self) {
        let now = Instant::now();
        self.listings.retain(|listing| listing.expires > now);
    }
}

/// How many of the items are on the next page: at least one.
fn fitting(items: &[&Item], max_entries: Option<usize>) -> usize {
    let mut bytes = 0;
    let fits = |item: &&&Item| {
        bytes += item.size();
        bytes <= PAGE
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
            entry: prost::bytes::Bytes::from(vec![7; size])
                .encode_to_vec()
                .into(),
        };
        (0..count).map(item).collect()
    }

    /// Lists to the end, and tells how long each page was and how often all was read.
    async fn list(listings: &Listings, items: fn() -> Vec<Item>) -> (Vec<usize>, usize) {
        let (mut pages, mut reads) = (Vec::new(), 0);
        let mut request = PageRequest::default();
        loop {
            let read = async {
                reads += 1;
                Ok(items())
            };
            let page: Page<prost::bytes::Bytes> =
                listings.page("test", request.clone(), read).await.unwrap();
            pages.push(page.entries.len());
            if page.next_token.is_empty() {
                return (pages, reads);
            }
            request.after = Some(page.next_token.parse().unwrap());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_listing_is_read_once_and_let_go_at_its_end() {
        let listings = Listings::default();
        let (pages, reads) = list(&listings, || items(70_000, 110)).await;
        assert_eq!((pages.iter().sum::<usize>(), reads), (70_000, 1));
        assert!(pages.len() > 2, "{pages:?}");
        assert!(listings.lock().listings.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_listing_that_is_too_large_to_keep_is_read_for_each_page() {
        let listings = Listings::default();
        let (pages, reads) = list(&listings, || items(20, 2 << 20)).await;
        assert_eq!((pages, reads), (vec![1; 20], 20));
    }

    #[tokio::test(start_paused = true)]
    async fn few_listings_are_kept_and_none_that_nobody_goes_on_with() {
        let listings = Listings::default();
        let kept: Vec<_> = (0..6)
            .map(|_| listings.keep("test", &Arc::new(items(3, 10))).unwrap())
            .collect();
        assert!(listings.find(kept[1], "test").is_none());
        assert!(listings.find(kept[2], "test").is_some());
        assert!(listings.find(kept[2], "other").is_none());
        tokio::time::sleep(KEEP / 2).await;
        assert!(listings.find(kept[5], "test").is_some());
        tokio::time::sleep(KEEP / 2 + Duration::from_secs(1)).await;
        let left: Vec<_> = listings.lock().listings.iter().map(|l| l.number).collect();
        assert_eq!(left, [kept[5]]);
        tokio::time::sleep(KEEP).await;
        assert!(listings.lock().listings.is_empty());
    }
}
