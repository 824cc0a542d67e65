//! One listing of the resources of this cluster, instead of a query by tags per creation. It finds the resources of
//! earlier processes, and proves that a name has none.
//!
//! The token of a name that is older than this process may have expired: the cloud keeps tokens for a limited time (a
//! day has been observed). A name that is not in the listing is newer than the listing, so its token certainly protects
//! it while the listing is recent enough.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ecs::Result;
use tokio::time::Instant;

use super::nodes::Nodes;
use super::{EFFECT_DELAY, Rows};
use crate::base::{Deadline, Tasks, error_chain};
use crate::disk::dependencies::Dependencies;
use crate::disk::observed::Observed;
use crate::disk::owned::{MAX_FILTERED_ROWS, OwnedResource};
use crate::disk::ownership::creation_key;
use crate::model::{Disk, Tags};

/// How long a token certainly protects a name that is not in the listing: half a day.
const MAX_AGE: Duration = Duration::from_secs(12 * 3600);
/// Age after which the next creation refreshes the listing.
const REFRESH_AGE: Duration = Duration::from_secs(11 * 3600);
/// The same for a listing without a canary.
const EMPTY_REFRESH_AGE: Duration = Duration::from_secs(60);
/// Maximum wait of a create for the first listing; after that, it queries the tags of the name.
const FIND_TIMEOUT: Duration = Duration::from_millis(500);
const RETRY_DELAY: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum wait for a listing that proves that a name is free. It continues in the background for the retry of the
/// call.
const PROOF_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Pages = Box<dyn Fn(Tags, Option<String>) -> BoxFuture<Result<Page>> + Send + Sync>;
type Key = Box<dyn Fn() -> u64 + Send + Sync>;

pub(in crate::disk) struct OwnershipListing {
    lister: Arc<Lister>,
    tasks: Tasks,
}

struct Lister {
    page: Pages,
    tags: Tags,
    /// A number that changes with the access key.
    key: Key,
    /// The disks of the account, a canary for other kinds of resources.
    disks: Option<Arc<Rows<Disk>>>,
    nodes: Arc<Nodes>,
    state: Observed<State>,
}

type Page = ecs::Page<Row>;

struct Row {
    /// Name and ID; `None` for a row of another owner.
    named: Option<(String, String)>,
    is_canary: bool,
}

#[derive(Default)]
struct State {
    names: Option<Arc<Names>>,
    is_running: bool,
    /// The start of the last listing, and whether it was for a proof.
    last_start: Option<(Instant, bool)>,
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
    key: u64,
    /// Number of listed rows, with those that have no name or cannot be read.
    rows: usize,
    /// Number of named resources of this cluster.
    owned: usize,
    /// Whether a resource was visible that must be.
    has_canary: bool,
    unreadable: usize,
    /// Whether the resources of other owners were searched for a canary, if there was none.
    is_for_proof: bool,
    /// Whether the account certainly shows no resource of any owner.
    is_account_empty: bool,
    /// The ID of each name; `None` if several resources have the name.
    ids: HashMap<String, Option<String>>,
}

impl OwnershipListing {
    pub(super) fn for_resource<V: OwnedResource>(shared: &Dependencies) -> Self {
        let (described, signed) = (shared.clone(), Arc::clone(&shared.ecs));
        let page = move |filter, next| -> BoxFuture<Result<Page>> {
            let Dependencies { ecs, owner, nodes, .. } = described.clone();
            Box::pin(async move {
                let page = V::list_page(&ecs, Deadline::after(TIMEOUT), filter, next).await?;
                let row = |row: &V| {
                    let name = creation_key(row.tags()).filter(|_| owner.owns(row.tags()));
                    let named = name.map(|name| (name, row.id().to_string()));
                    let is_canary = V::is_canary(row, &owner, &nodes);
                    Row { named, is_canary }
                };
                Ok(Page {
                    rows: page.rows.iter().map(row).collect(),
                    unreadable: page.unreadable,
                    next: page.next,
                })
            })
        };
        let (tasks, tags, nodes) = (shared.tasks.clone(), shared.owner.tags(), Arc::clone(&shared.nodes));
        // A list of disks needs a canary of its own.
        let disks = (V::KIND != Disk::KIND).then(|| Arc::clone(&shared.disks));
        let key = Box::new(move || signed.key_generation());
        Self::new(tasks, tags, Box::new(page), key, (disks, nodes))
    }

    fn new(
        tasks: Tasks,
        tags: Tags,
        page: Pages,
        key: Key,
        (disks, nodes): (Option<Arc<Rows<Disk>>>, Arc<Nodes>),
    ) -> Self {
        let lister = Arc::new(Lister {
            page,
            tags,
            key,
            disks,
            nodes,
            state: Observed::default(),
        });
        Self { lister, tasks }
    }

    /// Starts the listing in the background, unless a recent one exists.
    pub(in crate::disk) fn start(&self) {
        let is_due = |names: &Names| names.started.elapsed() >= names.refresh_age();
        self.start_unless(|names| !is_due(names), false);
    }

    /// The state of the name, after a short wait for a listing in progress.
    pub(super) async fn find(&self, deadline: Deadline, name: &str) -> Listed {
        self.start();
        let names = self.wait(deadline.at_most(FIND_TIMEOUT), |names| {
            names.started.elapsed() < MAX_AGE
        });
        names.await.map_or(Listed::Unknown, |names| names.find(name))
    }

    /// Whether a listing with a canary that began [`EFFECT_DELAY`] after `since` lacks the name. Unless `is_strict`,
    /// any disk of this cluster is a sufficient canary; and an account that shows nothing at all needs none, since a
    /// new cluster in a new account has none, unless it is known to have nodes, whose system disks must be visible. A
    /// listing that has a resource of the name that is known to be gone by now is followed by another one.
    pub(super) async fn excludes(
        &self,
        deadline: Deadline,
        name: &str,
        since: Instant,
        is_strict: bool,
        is_gone: impl Fn(&str) -> bool + Send + Sync,
    ) -> bool {
        let after = since + EFFECT_DELAY;
        if Instant::now() < after {
            return false;
        }
        let key = (self.lister.key)();
        let counts = |names: &Names| {
            let is_complete = names.has_canary || names.is_for_proof;
            let is_outdated = match names.ids.get(name) {
                Some(Some(id)) => is_gone(id),
                // Several resources, some of which may be gone.
                Some(None) => true,
                None => false,
            };
            is_complete && names.started >= after && names.key == key && !is_outdated
        };
        let is_empty = |names: &Names| names.is_account_empty && self.lister.nodes.is_empty();
        let is_proof = |names: &Names| counts(names) && (names.has_canary || !is_strict && is_empty(names));
        self.start_unless(is_proof, true);
        let Some(names) = self.wait(deadline.at_most(PROOF_TIMEOUT), counts).await else {
            return false;
        };
        // An unreadable row may have the name.
        if names.ids.contains_key(name) || names.unreadable > 0 && !names.has_canary {
            return false;
        }
        if is_proof(&names) {
            return true;
        }
        match &self.lister.disks {
            Some(disks) if !is_strict => disks.has_or_finds_canary(deadline).await,
            _ => false,
        }
    }

    /// The listing if it is usable, after a wait for one in progress.
    async fn wait(&self, deadline: Deadline, is_usable: impl Fn(&Names) -> bool + Send + Sync) -> Option<Arc<Names>> {
        let usable = |state: &State| state.names.clone().filter(|names| is_usable(names));
        let is_decided = |state: &State| usable(state).is_some() || !state.is_running;
        let _elapsed_or_decided = deadline.bound(self.lister.state.wait_for(is_decided)).await;
        usable(&self.lister.state.read())
    }

    /// Starts a listing unless the last one is sufficient. A listing for a proof finds out whether the account is
    /// empty.
    fn start_unless(&self, is_sufficient: impl Fn(&Names) -> bool, is_for_proof: bool) {
        let mut is_complete = is_for_proof;
        let begins = self.lister.state.update_if(|state| {
            let is_paused = state
                .last_start
                .is_some_and(|(last, was_for_proof)| last.elapsed() < RETRY_DELAY && (was_for_proof || !is_for_proof));
            let is_sufficient = state.names.as_deref().is_some_and(&is_sufficient);
            let begins = !state.is_running && !is_paused && !is_sufficient;
            if begins {
                // Only the first listing may omit the search for a canary: most processes need no proof.
                is_complete |= state.last_start.is_some();
                state.is_running = true;
                state.last_start = Some((Instant::now(), is_complete));
            }
            begins
        });
        if begins {
            let lister = Arc::clone(&self.lister);
            self.tasks
                .spawn_background(async move { lister.refresh(is_complete).await });
        }
    }
}

impl Lister {
    async fn refresh(&self, is_for_proof: bool) {
        let listing = Deadline::after(TIMEOUT).bound(self.names(is_for_proof));
        let names = match listing.await {
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
        self.state.update(|state| {
            state.is_running = false;
            state.names = names.or_else(|| state.names.take());
        });
    }

    async fn names(&self, is_for_proof: bool) -> Result<Names> {
        let key = (self.key)();
        let mut names = self.pages(&self.tags).await?;
        if names.rows >= MAX_FILTERED_ROWS {
            names = self.pages(&Tags::new()).await?;
        } else if is_for_proof && names.owned + names.unreadable == 0 {
            let page = (self.page)(Tags::new(), None).await?;
            names.has_canary = page.rows.iter().any(|row| row.is_canary);
            names.is_account_empty = page.rows.is_empty() && page.unreadable.is_empty();
        }
        names.is_for_proof = is_for_proof;
        // A listing by two keys belongs to none.
        names.key = key;
        if (self.key)() != key {
            names.started = names.started.checked_sub(MAX_AGE).unwrap_or(names.started);
        }
        Ok(names)
    }

    async fn pages(&self, tags: &Tags) -> Result<Names> {
        let mut names = Names {
            started: Instant::now(),
            key: 0,
            rows: 0,
            owned: 0,
            has_canary: false,
            is_for_proof: false,
            unreadable: 0,
            is_account_empty: false,
            ids: HashMap::new(),
        };
        let mut next = None;
        loop {
            let page = (self.page)(tags.clone(), next).await?;
            names.rows += page.rows.len() + page.unreadable.len();
            names.unreadable += page.unreadable.len();
            for (name, id) in page.rows.into_iter().filter_map(|row| row.named) {
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
    /// A listing without a canary does not prove that the account may list its resources.
    fn refresh_age(&self) -> Duration {
        if self.owned == 0 {
            EMPTY_REFRESH_AGE
        } else {
            REFRESH_AGE
        }
    }

    fn add(&mut self, name: String, id: String) {
        self.owned += 1;
        self.has_canary = true;
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
        let names = self.lister.state.read().names.clone();
        f.debug_struct("OwnershipListing")
            .field("names", &names.map(|names| names.ids.len()))
            .finish_non_exhaustive()
    }
}
