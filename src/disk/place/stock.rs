//! What the cloud says is in stock (`DescribeAvailableResource`), asked once for all who want to know.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Candidate;
use crate::base::Deadline;
use crate::cloud::{self, DescribeStock, Ecs};
use crate::model::ZoneStock;

/// How long an answer, or having got none, is good.
const GOOD: Duration = Duration::from_secs(60);

/// The last answers: of the zones, and of the region as a whole.
#[derive(Debug, Default)]
pub(super) struct Stock {
    zones: Shared,
    region: Shared,
}

#[derive(Debug, Default)]
struct Shared {
    /// Held during a call, so that others wait for its answer instead of asking as well.
    asking: Mutex<()>,
    last: std::sync::Mutex<Option<(Instant, Answer)>>,
}

/// None is a call that failed.
type Answer = Option<Arc<Vec<ZoneStock>>>;

impl Shared {
    /// The last answer, if it is still good.
    fn known(&self) -> Option<Answer> {
        let last = self.last.lock();
        let last = last.unwrap_or_else(std::sync::PoisonError::into_inner);
        let (at, answer) = last.as_ref()?;
        (at.elapsed() < GOOD).then(|| answer.clone())
    }

    fn keep(&self, answer: Answer) {
        let last = self.last.lock();
        *last.unwrap_or_else(std::sync::PoisonError::into_inner) = Some((Instant::now(), answer));
    }
}

impl Stock {
    fn of(&self, regional: bool) -> &Shared {
        if regional { &self.region } else { &self.zones }
    }

    /// Whether the pair is in stock, as far as is known without a call; none when it is not known.
    pub(super) fn has(&self, pair: &Candidate) -> Option<bool> {
        let zones = self.of(pair.category.is_regional()).known()??;
        Some(sells(&zones, pair))
    }

    /// Whether asking could tell something new.
    pub(super) fn is_unknown(&self, regional: bool) -> bool {
        self.of(regional).known().is_none()
    }

    /// What is in stock, from a call or from one a short while ago.
    pub(super) async fn ask(
        &self,
        ecs: &dyn Ecs,
        deadline: Deadline,
        regional: bool,
    ) -> cloud::Result<Arc<Vec<ZoneStock>>> {
        let shared = self.of(regional);
        let Ok(_turn) = deadline.bound(shared.asking.lock()).await else {
            return Err(cloud::Error::new(
                cloud::Kind::Deadline,
                "DescribeAvailableResource",
            ));
        };
        if let Some(Some(answer)) = shared.known() {
            return Ok(answer);
        }
        let query = DescribeStock {
            regional,
            ..DescribeStock::default()
        };
        match ecs.describe_available_resource(deadline, &query).await {
            Ok(answer) => {
                let answer = Arc::new(answer);
                shared.keep(Some(Arc::clone(&answer)));
                Ok(answer)
            }
            Err(error) => {
                shared.keep(None);
                Err(error)
            }
        }
    }
}

/// Whether the answer has the pair in stock.
pub(super) fn sells(zones: &[ZoneStock], pair: &Candidate) -> bool {
    let mut here = zones.iter().filter(|stock| match &pair.zone {
        Some(zone) => stock.zone.as_ref() == Some(zone),
        None => true,
    });
    here.any(|stock| {
        let mut categories = stock.categories.iter();
        categories.any(|stock| stock.category == pair.category && stock.available)
    })
}
