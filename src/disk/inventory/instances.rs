//! Reads the states of instances.

use std::collections::BTreeMap;
use std::sync::Arc;

use ecs::{Client, DescribeInstances};
use tokio::time::Instant;

use crate::base::Deadline;
use crate::disk::Result;
use crate::disk::error::cloud;
use crate::model::{InstanceId, InstanceStatus};

#[derive(Debug)]
pub struct Instances(pub(in crate::disk) Arc<Client>);

/// The states of instances as the cloud reports them. Without permission the response is empty: a missing instance
/// proves nothing unless an instance that must exist is in the same response.
#[derive(Debug, Clone)]
pub struct InstanceStates {
    /// The states are not older than this, except by the lag of the cloud.
    pub began: Instant,
    pub ended: Instant,
    /// A number that changes with the access key.
    pub key: u64,
    /// The state of each instance that was asked for; none if the response lacks it.
    pub states: BTreeMap<InstanceId, Option<InstanceStatus>>,
}

impl Instances {
    /// Reads the states of these instances, as many as one call can return. None if that proves nothing, because the
    /// access key changed meanwhile or the response is one page of several.
    pub async fn states(&self, deadline: Deadline, ids: &[InstanceId]) -> Result<Option<InstanceStates>> {
        let (began, key) = (Instant::now(), self.0.key_generation());
        let query = DescribeInstances {
            ids: Some(ids.to_vec()),
            ..DescribeInstances::default()
        };
        let page = self.0.describe_instances(deadline, &query).await;
        let page = page.map_err(cloud("describe the instances"))?;
        let is_complete = page.next.is_none() && self.0.key_generation() == key;
        let mut states: BTreeMap<_, _> = ids.iter().map(|id| (id.clone(), None)).collect();
        states.extend(page.rows.into_iter().map(|row| (row.id, Some(row.status))));
        let ended = Instant::now();
        let read = InstanceStates {
            began,
            ended,
            key,
            states,
        };
        Ok(is_complete.then_some(read))
    }
}
