//! One listing of what this cluster owns, instead of a lookup by tags per creation.
//!
//! A name that is older than this process may have been forgotten by its token: the cloud keeps tokens for a while
//! (a day is what others have observed). A name that is not in the listing is younger than it, so that its token
//! certainly protects it as long as the listing is not too old.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::dependencies::Dependencies;
use super::owned::{MOST_BY_TAGS, Owned};
use super::ownership::key_of;
use crate::base::error_chain;
use crate::base::{Deadline, Tasks};
use crate::cloud::{self, Result};
use crate::model::Tags;

/// For so long a token certainly protects a name that is not in the listing: half of a day.
const VALID: Duration = Duration::from_secs(12 * 3600);
/// Age from which on the next creation renews the listing.
const RENEWED: Duration = Duration::from_secs(11 * 3600);
/// The same for a listing without any row.
const EMPTY: Duration = Duration::from_secs(60);
/// Maximum wait of a create for the first listing; after that it queries the name by tags.
const WAIT: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(600);
/// Longest wait for a listing that is to prove something.
const PROOF: Duration = Duration::from_secs(10);
/// An order that was not answered has taken effect by then, or never will; and tags are indexed.
pub(super) const EFFECT: Duration = Duration::from_secs(60);
/// The same for the last orders of the process before this one. It ended some time before this one began, and a refusal
/// that is not final keeps a claim from being scheduled elsewhere.
const EARLIER_EFFECT: Duration = Duration::from_secs(10);

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Pages = Box<dyn Fn(Tags, Option<String>) -> BoxFuture<Result<Page>> + Send + Sync>;

pub(super) struct OwnershipListing {
    shared: Arc<Shared>,
    tasks: Tasks,
}

struct Shared {
    page: Pages,
    tags: Tags,
    state: watch::Sender<State>,
}

/// Name and id of each row; none for one of another owner.
type Page = cloud::Page<Option<(String, String)>>;

struct State {
    names: Option<Arc<Names>>,
    is_running: bool,
    /// How many listings had no row; none after one that had.
    empty: Option<u32>,
    tried: Option<Instant>,
}

/// What the listing says of a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Listed {
    /// Its token protects it.
    No,
    /// It is the name of this id.
    As(String),
    /// No listing, an outdated one, or an inconclusive one: a row is unreadable, or several rows have the name.
    Unknown,
}

struct Names {
    begun: Instant,
    rows: usize,
    unreadable: usize,
    /// The id of each name; none if several resources have the name.
    ids: HashMap<String, Option<String>>,
}

impl OwnershipListing {
    pub(super) fn of<V: Owned>(shared: &Dependencies) -> Self {
        let Dependencies {
            ecs, owner, tasks, ..
        } = shared.clone();
        let filter = owner.tags();
        let page = move |filter, next| -> BoxFuture<Result<Page>> {
            let (ecs, owner) = (Arc::clone(&ecs), owner.clone());
            Box::pin(async move {
                let page = V::page(ecs.as_ref(), Deadline::after(LONGEST), filter, next).await?;
                let named = |row: &V| {
                    let name = key_of(row.tags()).filter(|_| owner.has(row.tags()))?;
                    Some((name, row.id().to_string()))
                };
                Ok(Page {
                    rows: page.rows.iter().map(named).collect(),
                    unreadable: page.unreadable,
                    next: page.next,
                })
            })
        };
        Self::new(tasks, filter, Box::new(page))
    }

    fn new(tasks: Tasks, tags: Tags, page: Pages) -> Self {
        let shared = Arc::new(Shared {
            page,
            tags,
            state: watch::Sender::new(State {
                names: None,
                is_running: false,
                empty: Some(0),
                tried: None,
            }),
        });
        Self { shared, tasks }
    }

    /// Begins the listing in the background, unless it is known and new enough.
    pub(super) fn start(&self) {
        let is_due = |state: &State| {
            let names = state.names.as_ref();
            names.is_none_or(|names| names.begun.elapsed() >= names.renewed_after())
        };
        self.start_if(is_due, false);
    }

    /// What is known of the name, after a short wait for a listing that is under way.
    pub(super) async fn find(&self, deadline: Deadline, name: &str) -> Listed {
        self.start();
        let names = self.wait(deadline.at_most(WAIT), |names| {
            names.begun.elapsed() < VALID
        });
        names
            .await
            .map_or(Listed::Unknown, |names| names.find(name))
    }

    /// Whether a listing proves that an order under this name, whose newest attempt ended `since`, had no effect: it
    /// began long after that and returned other resources.
    pub(super) async fn proves_absent(
        &self,
        deadline: Deadline,
        name: &str,
        since: Instant,
    ) -> bool {
        self.lacks(deadline, name, since + EFFECT).await
    }

    /// Whether a listing that began after this instant has rows, but not this name.
    async fn lacks(&self, deadline: Deadline, name: &str, after: Instant) -> bool {
        if Instant::now() < after {
            return false;
        }
        let proves = |names: &Names| names.rows > 0 && names.begun >= after;
        let is_due = |state: &State| !state.names.as_deref().is_some_and(proves);
        self.start_if(is_due, true);
        let names = self.wait(deadline.at_most(PROOF), proves).await;
        // The caller has just looked the name up by tags, so that a row that cannot be read is not its.
        names.is_some_and(|names| !names.ids.contains_key(name))
    }

    /// The listing if it is good enough, after a wait for one that is under way.
    async fn wait(
        &self,
        deadline: Deadline,
        is_good: impl Fn(&Names) -> bool + Send + Sync,
    ) -> Option<Arc<Names>> {
        let good = |state: &State| state.names.clone().filter(|names| is_good(names));
        let mut states = self.shared.state.subscribe();
        let is_decided = |state: &State| good(state).is_some() || !state.is_running;
        let _ = deadline.bound(states.wait_for(is_decided)).await;
        good(&self.shared.state.borrow())
    }

    /// Whether nothing that other processes have ordered under this name can exist; they ordered nothing `since`. An
    /// account without any resource must be shown empty twice.
    pub(super) async fn excludes_earlier(
        &self,
        deadline: Deadline,
        name: &str,
        since: Instant,
    ) -> bool {
        let after = since + EARLIER_EFFECT;
        let mut next = after;
        while next.saturating_duration_since(Instant::now()) < deadline.remaining() {
            tokio::time::sleep_until(next).await;
            if self.lacks(deadline, name, after).await {
                return true;
            }
            let state = self.shared.state.borrow();
            let is_new = state
                .names
                .as_ref()
                .is_some_and(|names| names.begun >= after);
            match state.empty {
                None | Some(0) => return false,
                Some(1) => next = Instant::now() + PAUSE,
                _ => return is_new,
            }
        }
        false
    }

    /// Whether a listing was complete, and none had a row.
    pub(super) fn is_empty(&self) -> bool {
        self.shared
            .state
            .borrow()
            .empty
            .is_some_and(|count| count > 0)
    }

    fn start_if(&self, is_due: impl Fn(&State) -> bool, witnessed: bool) {
        let begins = self.shared.state.send_if_modified(|state| {
            let is_paused = state.tried.is_some_and(|tried| tried.elapsed() < PAUSE);
            let begins = !state.is_running && !is_paused && is_due(state);
            if begins {
                state.is_running = true;
                state.tried = Some(Instant::now());
            }
            begins
        });
        if begins {
            let shared = Arc::clone(&self.shared);
            self.tasks
                .spawn_background(async move { shared.refresh(witnessed).await });
        }
    }
}

impl Shared {
    async fn refresh(&self, witnessed: bool) {
        let names = match Deadline::after(LONGEST).bound(self.names(witnessed)).await {
            Ok(Ok(names)) => Some(Arc::new(names)),
            Ok(Err(error)) => {
                tracing::warn!(
                    error = error_chain(&error),
                    "cannot list the resources of this cluster; each create queries its name by tags"
                );
                None
            }
            Err(_) => None,
        };
        self.state.send_modify(|state| {
            state.is_running = false;
            if let Some(names) = &names {
                state.empty = state
                    .empty
                    .filter(|_| names.rows == 0)
                    .map(|empty| empty + 1);
            }
            state.names = names.or_else(|| state.names.take());
        });
    }

    async fn names(&self, witnessed: bool) -> Result<Names> {
        let names = self.pages(&self.tags).await?;
        if names.rows >= MOST_BY_TAGS || witnessed && names.rows == 0 {
            return self.pages(&Tags::new()).await;
        }
        Ok(names)
    }

    async fn pages(&self, tags: &Tags) -> Result<Names> {
        let mut names = Names {
            begun: Instant::now(),
            rows: 0,
            unreadable: 0,
            ids: HashMap::new(),
        };
        let mut next = None;
        loop {
            let page = (self.page)(tags.clone(), next).await?;
            names.rows += page.rows.len();
            names.unreadable += page.unreadable.len();
            for (name, id) in page.rows.into_iter().flatten() {
                names.add(name, id);
            }
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        names.ids.shrink_to_fit();
        Ok(names)
    }
}

impl Names {
    /// Without a row nothing shows that the account may see its resources.
    fn renewed_after(&self) -> Duration {
        if self.rows == 0 { EMPTY } else { RENEWED }
    }

    fn add(&mut self, name: String, id: String) {
        let known = self.ids.entry(name);
        known.and_modify(|known| *known = None).or_insert(Some(id));
    }

    fn find(&self, name: &str) -> Listed {
        match self.ids.get(name) {
            Some(Some(id)) => Listed::As(id.clone()),
            None if self.unreadable == 0 => Listed::No,
            None | Some(None) => Listed::Unknown,
        }
    }
}

impl fmt::Debug for OwnershipListing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.shared.state.borrow().names.clone();
        f.debug_struct("OwnershipListing")
            .field("names", &names.map(|names| names.ids.len()))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::cloud::{Error, Kind};

    /// Lists so many names of this cluster by two rows a page; every call of a number in `fails` fails.
    fn listing(names: usize, fails: &'static [usize]) -> (OwnershipListing, Arc<AtomicUsize>) {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let page = move |tags: Tags, next: Option<String>| -> BoxFuture<Result<Page>> {
            let call = counted.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                if fails.contains(&call) {
                    return Err(Error::new(Kind::Ambiguous, "DescribeDisks"));
                }
                let from: usize = next.map_or(0, |next| next.parse().unwrap());
                let until = (from + 500).min(names);
                // A list that is filtered by tags ends early.
                let ends = until == names || !tags.is_empty() && until >= MOST_BY_TAGS;
                let rows = (from..until).map(|n| Some((format!("pvc-{n}"), format!("d-{n}"))));
                let next = (!ends).then(|| until.to_string());
                Ok(Page::new(rows.collect(), next))
            })
        };
        let tags = Tags::from([("cluster".to_owned(), "test".to_owned())]);
        let listing = OwnershipListing::new(Tasks::default(), tags, Box::new(page));
        (listing, calls)
    }

    async fn find(listing: &OwnershipListing, name: &str) -> Listed {
        let deadline = Deadline::after(Duration::from_secs(60));
        listing.find(deadline, name).await
    }

    #[tokio::test(start_paused = true)]
    async fn many_creations_share_one_listing() {
        let (listing, calls) = listing(700, &[]);
        let (last, none, first) = tokio::join!(
            find(&listing, "pvc-699"),
            find(&listing, "pvc-700"),
            find(&listing, "pvc-0"),
        );
        assert_eq!(last, Listed::As("d-699".to_owned()));
        assert_eq!(none, Listed::No);
        assert_eq!(first, Listed::As("d-0".to_owned()));
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_the_cloud_cuts_off_is_repeated_without_a_filter() {
        let (listing, calls) = listing(1700, &[]);
        assert_eq!(find(&listing, "pvc-1699").await, Listed::Unknown);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(
            find(&listing, "pvc-1699").await,
            Listed::As("d-1699".to_owned())
        );
        assert_eq!(calls.load(Ordering::SeqCst), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_listing_is_renewed_in_time_and_a_failed_one_after_a_pause() {
        let (listing, calls) = listing(1, &[1, 2]);
        assert_eq!(find(&listing, "pvc-9").await, Listed::No);
        tokio::time::advance(RENEWED).await;
        // The old one still holds, and its renewal fails.
        assert_eq!(find(&listing, "pvc-9").await, Listed::No);
        tokio::time::sleep(VALID - RENEWED).await;
        assert_eq!(find(&listing, "pvc-9").await, Listed::Unknown);
        assert_eq!(find(&listing, "pvc-9").await, Listed::Unknown);
        assert_eq!(calls.load(Ordering::SeqCst), 3);
        tokio::time::advance(PAUSE).await;
        assert_eq!(find(&listing, "pvc-9").await, Listed::No);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_later_listing_with_rows_proves_that_an_order_had_no_effect() {
        for (names, proves) in [(1, true), (0, false)] {
            let (listing, _) = listing(names, &[]);
            assert_eq!(find(&listing, "pvc-9").await, Listed::No);
            let since = Instant::now();
            let deadline = Deadline::after(Duration::from_secs(600));
            assert!(!listing.proves_absent(deadline, "pvc-9", since).await);
            tokio::time::advance(EFFECT).await;
            let proven = listing.proves_absent(deadline, "pvc-9", since).await;
            assert_eq!(proven, proves);
            assert!(!listing.proves_absent(deadline, "pvc-0", since).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_row_that_cannot_be_read_leaves_the_names_of_the_others() {
        let page = |_, _| -> BoxFuture<Result<Page>> {
            let row = ("pvc-0".to_owned(), "d-0".to_owned());
            let mut page = Page::new(vec![Some(row)], None);
            let (id, reason) = (None, "no size".to_owned());
            page.unreadable.push(cloud::Unreadable { id, reason });
            Box::pin(async { Ok(page) })
        };
        let listing = OwnershipListing::new(Tasks::default(), Tags::new(), Box::new(page));
        assert_eq!(find(&listing, "pvc-0").await, Listed::As("d-0".to_owned()));
        // It may be the row that cannot be read, so that the name is looked up by its tags.
        assert_eq!(find(&listing, "pvc-9").await, Listed::Unknown);
        let since = Instant::now();
        tokio::time::advance(EFFECT).await;
        let deadline = Deadline::after(Duration::from_secs(600));
        assert!(listing.proves_absent(deadline, "pvc-9", since).await);
    }
}
