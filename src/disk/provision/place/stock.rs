//! What the cloud says is in stock (`DescribeAvailableResource`), asked once for all who want to know.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::Candidate;
use crate::base::error_chain;
use crate::base::{Deadline, LogOnce};
use crate::cloud::{self, DescribeStock, EcsApi, Kind};
use crate::disk::journal::Recent;
use crate::model::ZoneStock;

/// How long an answer, or having got none, is good.
const GOOD: Duration = Duration::from_secs(60);

const QUERY: &str = "query";

/// The last answers: of the zones, and of the region as a whole.
#[derive(Debug, Default)]
pub(super) struct Stock {
    /// Held during a call, so that others wait for its answer instead of asking as well. The second is of the region.
    asking: [Mutex<()>; 2],
    /// By whether it is of the region.
    last: Recent<bool, Answer>,
    log_once: LogOnce,
}

#[derive(Debug, Clone)]
enum Answer {
    Known(Arc<Vec<ZoneStock>>),
    /// The query was rejected.
    Refused,
    Failed,
}

impl Stock {
    /// Whether the pair is in stock, as far as is known without a call; none when it is not known.
    pub(super) fn has(&self, pair: &Candidate) -> Option<bool> {
        match self.last.get(&pair.category.is_regional())? {
            Answer::Known(zones) => Some(sells(&zones, pair)),
            Answer::Refused | Answer::Failed => None,
        }
    }

    pub(super) fn is_unknown(&self, regional: bool) -> bool {
        self.last.get(&regional).is_none()
    }

    /// The stock, from a call or a recent one; none if the cloud rejects the query because of the key, its permissions or the
    /// region, which is logged once.
    pub(super) async fn ask(
        &self,
        ecs: &dyn EcsApi,
        deadline: Deadline,
        regional: bool,
    ) -> cloud::Result<Option<Arc<Vec<ZoneStock>>>> {
        let Ok(_turn) = deadline
            .bound(self.asking[usize::from(regional)].lock())
            .await
        else {
            let action = "DescribeAvailableResource";
            return Err(cloud::Error::new(Kind::Deadline, action));
        };
        match self.last.get(&regional) {
            Some(Answer::Known(zones)) => return Ok(Some(zones)),
            Some(Answer::Refused) => return Ok(None),
            Some(Answer::Failed) | None => {}
        }
        let query = DescribeStock {
            regional,
            ..DescribeStock::default()
        };
        match ecs.describe_available_resource(deadline, &query).await {
            Ok(zones) => {
                self.log_once.clear(&QUERY);
                let zones = Arc::new(zones);
                let known = Answer::Known(Arc::clone(&zones));
                self.last.note(&regional, GOOD, known);
                Ok(Some(zones))
            }
            Err(error) if is_refusal(&error) => {
                self.last.note(&regional, GOOD, Answer::Refused);
                if self
                    .log_once
                    .should_log(QUERY, error.code().unwrap_or("refused"))
                {
                    let error = error_chain(&error);
                    tracing::warn!(
                        "the stock may not be looked at, and disks are taken to be there: {error}"
                    );
                }
                Ok(None)
            }
            Err(error) => {
                self.last.note(&regional, GOOD, Answer::Failed);
                Err(error)
            }
        }
    }
}

/// Whether the query will be rejected again until an operator changes something.
fn is_refusal(error: &cloud::Error) -> bool {
    matches!(
        error.kind(),
        Kind::Denied | Kind::Credentials | Kind::Precondition
    )
}

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
