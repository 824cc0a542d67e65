//! One listing of the resources of this cluster, instead of a query by tags per creation.
//!
//! The token of a name that is older than this process may have expired: the cloud keeps tokens for a limited time (a day
//! has been observed). A name that is not in the listing is newer than the listing, so its token certainly protects it
//! while the listing is recent enough.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::dependencies::Dependencies;
use super::owned::{MAX_FILTERED_ROWS, OwnedResource};
use super::ownership::creation_key;
use crate::base::error_chain;
use crate::base::{Deadline, Tasks};
use crate::cloud::{self, Result};
use crate::model::Tags;

/// How long a token certainly protects a name that is not in the listing: half a day.
const MAX_AGE: Duration = Duration::from_secs(12 * 3600);
/// Age after which the next creation refreshes the listing.
const REFRESH_AGE: Duration = Duration::from_secs(11 * 3600);
/// The same for an empty listing.
const EMPTY_REFRESH_AGE: Duration = Duration::from_secs(60);
/// Maximum wait of a create for the first listing; after that, it queries the tags of the name.
const FIND_TIMEOUT: Duration = Duration::from_millis(500);
const RETRY_DELAY: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum wait for a listing that proves absence.
const PROOF_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which a request without a response has taken effect or never will, and its tags are indexed.
pub(super) const EFFECT_DELAY: Duration = Duration::from_secs(60);
/// The same for requests of the previous leader, which stopped some time before this one started.
const PRIOR_EFFECT_DELAY: Duration = Duration::from_secs(10);

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

/// Name and ID of each row; `None` for a row of another owner.
type Page = cloud::Page<Option<(String, String)>>;

struct State {
    names: Option<Arc<Names>>,
    is_running: bool,
    /// Number of empty listings; `None` after one with rows.
    empty_count: Option<u32>,
    last_start: Option<Instant>,
}

/// The state of a name in the listing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Listed {
    /// Not listed: its token protects it.
    Absent,
    /// The ID of the resource.
    Found(String),
    /// The listing is missing, outdated or inconclusive: a row is unreadable, or several rows have the name.
    Unknown,
}

struct Names {
    started: Instant,
    rows: usize,
    unreadable: usize,
    /// The ID of each name; `None` if several resources have the name.
    ids: HashMap<String, Option<String>>,
}

impl OwnershipListing {
    pub(super) fn for_resource<V: OwnedResource>(shared: &Dependencies) -> Self {
        let Dependencies {
            ecs, owner, tasks, ..
        } = shared.clone();
        let filter = owner.tags();
        let page = move |filter, next| -> BoxFuture<Result<Page>> {
            let (ecs, owner) = (Arc::clone(&ecs), owner.clone());
            Box::pin(async move {
                let page =
                    V::list_page(ecs.as_ref(), Deadline::after(TIMEOUT), filter, next).await?;
                let named = |row: &V| {
                    let name = creation_key(row.tags()).filter(|_| owner.owns(row.tags()))?;
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
                empty_count: Some(0),
                last_start: None,
            }),
        });
        Self { shared, tasks }
    }

    /// Starts the listing in the background, unless a recent one exists.
    pub(super) fn start(&self) {
        let is_due = |state: &State| {
            let names = state.names.as_ref();
            names.is_none_or(|names| names.started.elapsed() >= names.refresh_age())
        };
        self.start_if(is_due, false);
    }

    /// The state of the name, after a short wait for a listing in progress.
    pub(super) async fn find(&self, deadline: Deadline, name: &str) -> Listed {
        self.start();
        let names = self.wait(deadline.at_most(FIND_TIMEOUT), |names| {
            names.started.elapsed() < MAX_AGE
        });
        names
            .await
            .map_or(Listed::Unknown, |names| names.find(name))
    }

    /// Whether a listing proves that a request under this name, whose latest attempt ended at `since`, had no effect: it
    /// started long after that and returned other resources.
    pub(super) async fn excludes(&self, deadline: Deadline, name: &str, since: Instant) -> bool {
        self.is_absent(deadline, name, since + EFFECT_DELAY).await
    }

    /// Whether a listing that started after this instant has rows, but not this name.
    async fn is_absent(&self, deadline: Deadline, name: &str, after: Instant) -> bool {
        if Instant::now() < after {
            return false;
        }
        let proves = |names: &Names| names.rows > 0 && names.started >= after;
        let is_due = |state: &State| !state.names.as_deref().is_some_and(proves);
        self.start_if(is_due, true);
        let names = self.wait(deadline.at_most(PROOF_TIMEOUT), proves).await;
        // The caller has just queried the tags of the name, so an unreadable row has another name.
        names.is_some_and(|names| !names.ids.contains_key(name))
    }

    /// The listing if it is usable, after a wait for one in progress.
    async fn wait(
        &self,
        deadline: Deadline,
        is_usable: impl Fn(&Names) -> bool + Send + Sync,
    ) -> Option<Arc<Names>> {
        let usable = |state: &State| state.names.clone().filter(|names| is_usable(names));
        let mut states = self.shared.state.subscribe();
        let is_decided = |state: &State| usable(state).is_some() || !state.is_running;
        let _ = deadline.bound(states.wait_for(is_decided)).await;
        usable(&self.shared.state.borrow())
    }

    /// Whether no resource can exist that other processes requested under this name before `since`. Two empty listings are
    /// required if the cluster owns no resource.
    pub(super) async fn excludes_earlier(
        &self,
        deadline: Deadline,
        name: &str,
        since: Instant,
    ) -> bool {
        let after = since + PRIOR_EFFECT_DELAY;
        let mut next = after;
        while next.saturating_duration_since(Instant::now()) < deadline.remaining() {
            tokio::time::sleep_until(next).await;
            if self.is_absent(deadline, name, after).await {
                return true;
            }
            let state = self.shared.state.borrow();
            let is_new = state
                .names
                .as_ref()
                .is_some_and(|names| names.started >= after);
            match state.empty_count {
                None | Some(0) => return false,
                Some(1) => next = Instant::now() + RETRY_DELAY,
                _ => return is_new,
            }
        }
        false
    }

    /// Whether a complete listing was empty, and none had rows.
    pub(super) fn is_confirmed_empty(&self) -> bool {
        self.shared
            .state
            .borrow()
            .empty_count
            .is_some_and(|count| count > 0)
    }

    fn start_if(&self, is_due: impl Fn(&State) -> bool, confirm_empty: bool) {
        let begins = self.shared.state.send_if_modified(|state| {
            let is_paused = state
                .last_start
                .is_some_and(|last| last.elapsed() < RETRY_DELAY);
            let begins = !state.is_running && !is_paused && is_due(state);
            if begins {
                state.is_running = true;
                state.last_start = Some(Instant::now());
            }
            begins
        });
        if begins {
            let shared = Arc::clone(&self.shared);
            self.tasks
                .spawn_background(async move { shared.refresh(confirm_empty).await });
        }
    }
}

impl Shared {
    async fn refresh(&self, confirm_empty: bool) {
        let names = match Deadline::after(TIMEOUT)
            .bound(self.names(confirm_empty))
            .await
        {
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
                state.empty_count = state.empty_count.filter(|_| names.rows == 0).map(|n| n + 1);
            }
            state.names = names.or_else(|| state.names.take());
        });
    }

    async fn names(&self, confirm_empty: bool) -> Result<Names> {
        let names = self.pages(&self.tags).await?;
        if names.rows >= MAX_FILTERED_ROWS || confirm_empty && names.rows == 0 {
            return self.pages(&Tags::new()).await;
        }
        Ok(names)
    }

    async fn pages(&self, tags: &Tags) -> Result<Names> {
        let mut names = Names {
            started: Instant::now(),
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
    /// An empty listing does not prove that the account has permission to list its resources.
    fn refresh_age(&self) -> Duration {
        if self.rows == 0 {
            EMPTY_REFRESH_AGE
        } else {
            REFRESH_AGE
        }
    }

    fn add(&mut self, name: String, id: String) {
        let known = self.ids.entry(name);
        known.and_modify(|known| *known = None).or_insert(Some(id));
    }

    fn find(&self, name: &str) -> Listed {
        match self.ids.get(name) {
            Some(Some(id)) => Listed::Found(id.clone()),
            None if self.unreadable == 0 => Listed::Absent,
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

    /// Lists this number of names in pages of 500 rows; the calls with the indexes in `fails` fail.
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
                // The cloud truncates a list filtered by tags.
                let ends = until == names || !tags.is_empty() && until >= MAX_FILTERED_ROWS;
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
    async fn concurrent_creates_share_one_listing() {
        let (listing, calls) = listing(700, &[]);
        let (last, none, first) = tokio::join!(
            find(&listing, "pvc-699"),
            find(&listing, "pvc-700"),
            find(&listing, "pvc-0"),
        );
        assert_eq!(last, Listed::Found("d-699".to_owned()));
        assert_eq!(none, Listed::Absent);
        assert_eq!(first, Listed::Found("d-0".to_owned()));
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn truncated_list_is_repeated_without_a_filter() {
        let (listing, calls) = listing(1700, &[]);
        assert_eq!(find(&listing, "pvc-1699").await, Listed::Unknown);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(
            find(&listing, "pvc-1699").await,
            Listed::Found("d-1699".to_owned())
        );
        assert_eq!(calls.load(Ordering::SeqCst), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn old_listing_is_refreshed_and_failed_refresh_is_retried() {
        let (listing, calls) = listing(1, &[1, 2]);
        assert_eq!(find(&listing, "pvc-9").await, Listed::Absent);
        tokio::time::advance(REFRESH_AGE).await;
        // The old listing is still valid, and its refresh fails.
        assert_eq!(find(&listing, "pvc-9").await, Listed::Absent);
        tokio::time::sleep(MAX_AGE - REFRESH_AGE).await;
        assert_eq!(find(&listing, "pvc-9").await, Listed::Unknown);
        assert_eq!(find(&listing, "pvc-9").await, Listed::Unknown);
        assert_eq!(calls.load(Ordering::SeqCst), 3);
        tokio::time::advance(RETRY_DELAY).await;
        assert_eq!(find(&listing, "pvc-9").await, Listed::Absent);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_later_listing_with_rows_proves_absence() {
        for (names, proves) in [(1, true), (0, false)] {
            let (listing, _) = listing(names, &[]);
            assert_eq!(find(&listing, "pvc-9").await, Listed::Absent);
            let since = Instant::now();
            let deadline = Deadline::after(Duration::from_secs(600));
            assert!(!listing.excludes(deadline, "pvc-9", since).await);
            tokio::time::advance(EFFECT_DELAY).await;
            let proven = listing.excludes(deadline, "pvc-9", since).await;
            assert_eq!(proven, proves);
            assert!(!listing.excludes(deadline, "pvc-0", since).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unreadable_row_does_not_hide_other_names() {
        let page = |_, _| -> BoxFuture<Result<Page>> {
            let row = ("pvc-0".to_owned(), "d-0".to_owned());
            let mut page = Page::new(vec![Some(row)], None);
            let (id, reason) = (None, "no size".to_owned());
            page.unreadable.push(cloud::Unreadable { id, reason });
            Box::pin(async { Ok(page) })
        };
        let listing = OwnershipListing::new(Tasks::default(), Tags::new(), Box::new(page));
        assert_eq!(
            find(&listing, "pvc-0").await,
            Listed::Found("d-0".to_owned())
        );
        // The unreadable row may have the name, so its tags must be queried.
        assert_eq!(find(&listing, "pvc-9").await, Listed::Unknown);
        let since = Instant::now();
        tokio::time::advance(EFFECT_DELAY).await;
        let deadline = Deadline::after(Duration::from_secs(600));
        assert!(listing.excludes(deadline, "pvc-9", since).await);
    }
}
