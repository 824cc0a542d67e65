//! Caches the cloud's stock (`DescribeAvailableResource`) for all calls.

use std::sync::Arc;
use std::time::Duration;

use ecs::{Client, DescribeStock, Kind};
use tokio::sync::Mutex;

use super::Candidate;
use crate::base::{Deadline, LogOnce, error_chain};
use crate::disk::journal::TtlCache;
use crate::model::ZoneStock;

const TTL: Duration = Duration::from_secs(60);

const QUERY: &str = "query";

#[derive(Debug, Default)]
pub(super) struct StockCache {
    /// Locked during a call, so that other calls wait for its response. The second one is for regional categories.
    in_flight: [Mutex<()>; 2],
    /// The key is whether the response is for regional categories.
    last: TtlCache<bool, StockResponse>,
    log_once: LogOnce,
}

#[derive(Debug, Clone)]
enum StockResponse {
    Available(Arc<Vec<ZoneStock>>),
    Rejected,
    Failed,
}

impl StockCache {
    /// Whether the candidate is in stock according to the cache; `None` if unknown.
    pub(super) fn is_in_stock(&self, candidate: &Candidate) -> Option<bool> {
        match self.last.get(&candidate.category.is_regional())? {
            StockResponse::Available(zones) => Some(is_in_stock(&zones, candidate)),
            StockResponse::Rejected | StockResponse::Failed => None,
        }
    }

    pub(super) fn remember(&self, regional: bool, zones: Vec<ZoneStock>) -> Arc<Vec<ZoneStock>> {
        let zones = Arc::new(zones);
        let response = StockResponse::Available(Arc::clone(&zones));
        self.last.insert(&regional, TTL, response);
        zones
    }

    pub(super) fn is_unknown(&self, regional: bool) -> bool {
        self.last.get(&regional).is_none()
    }

    /// The stock, from the cache or a call; `None` if the cloud rejects the query because of the key, its permissions
    /// or the region, which is logged once.
    pub(super) async fn query(
        &self,
        ecs: &Client,
        deadline: Deadline,
        regional: bool,
    ) -> ecs::Result<Option<Arc<Vec<ZoneStock>>>> {
        let Ok(_guard) = deadline.bound(self.in_flight[usize::from(regional)].lock()).await else {
            let action = "DescribeAvailableResource";
            return Err(ecs::Error::new(Kind::Deadline, action));
        };
        match self.last.get(&regional) {
            Some(StockResponse::Available(zones)) => return Ok(Some(zones)),
            Some(StockResponse::Rejected) => return Ok(None),
            Some(StockResponse::Failed) | None => {}
        }
        let query = DescribeStock {
            regional,
            ..DescribeStock::default()
        };
        match ecs.describe_available_resource(deadline, &query).await {
            Ok(zones) => {
                self.log_once.clear(&QUERY);
                Ok(Some(self.remember(regional, zones)))
            }
            Err(error) if is_rejection(&error) => {
                self.last.insert(&regional, TTL, StockResponse::Rejected);
                if self.log_once.should_log(QUERY, error.code().unwrap_or("rejected")) {
                    let error = error_chain(&error);
                    tracing::warn!("cannot query the stock, and assuming that disks are in stock: {error}");
                }
                Ok(None)
            }
            Err(error) => {
                self.last.insert(&regional, TTL, StockResponse::Failed);
                Err(error)
            }
        }
    }
}

/// Whether the query will be rejected again until the operator changes the configuration.
fn is_rejection(error: &ecs::Error) -> bool {
    matches!(error.kind(), Kind::Denied | Kind::Credentials | Kind::Precondition)
}

pub(super) fn is_in_stock(zones: &[ZoneStock], candidate: &Candidate) -> bool {
    let here = zones
        .iter()
        .filter(|stock| candidate.zone.is_none() || stock.zone == candidate.zone);
    let mut categories = here.flat_map(|stock| &stock.categories);
    categories.any(|stock| stock.category == candidate.category && stock.available)
}
