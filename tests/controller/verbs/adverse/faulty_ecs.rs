//! A cloud whose responses omit rows or ignore filters of the request.

use std::sync::Arc;

use async_trait::async_trait;
use http::{Request, Response};
use serde_json::{Value, json};
use tokio_util::bytes::Bytes;

use diskplugin::base::Deadline;
use diskplugin::model::tag;
use ecs::transport::{Lost, Transport};
use fake_ecs::Cloud;

use crate::common::memory_cloud::{MemoryTransport, client_over};
use crate::verbs::kit::altered::{change_rows, is_action, params, with_field, with_params};
use crate::verbs::kit::{Setup, disk_services};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The account can describe some disks (another resource group), but none of this cluster.
    HidesOwnedDisks,
    /// Filters by tags are ignored.
    IgnoresTagFilter,
    /// Filters by IDs are ignored: other rows are returned.
    IgnoresIdFilter,
    /// A page of IDs ends early, with a token for the rest.
    TruncatesPages,
    /// IDs with this suffix are malformed.
    RejectsIds(&'static str),
}

#[derive(Debug)]
struct FaultyTransport {
    cloud: Cloud,
    transport: MemoryTransport,
    fault: Fault,
}

fn is_owned(row: &Value) -> bool {
    let tags = row["Tags"]["Tag"].as_array().into_iter().flatten();
    tags.into_iter().any(|one| one["TagKey"] == tag::CLUSTER)
}

/// The requested IDs; none if all disks are requested.
fn requested(request: &Request<String>) -> Option<Vec<String>> {
    let ids = params(request).remove("DiskIds")?;
    Some(serde_json::from_str(&ids).unwrap())
}

#[async_trait]
impl Transport for FaultyTransport {
    async fn send(&self, request: Request<String>, deadline: Deadline) -> Result<Response<Bytes>, Lost> {
        let is_disks = is_action(&request, "DescribeDisks");
        let is_list = is_disks || is_action(&request, "DescribeSnapshots");
        let ids = requested(&request).filter(|_| is_disks);
        let without = |prefix: &str| {
            let mut params = params(&request);
            params.retain(|name, _| !name.starts_with(prefix));
            with_params(&request, &params, &self.cloud)
        };
        match (self.fault, ids) {
            (Fault::IgnoresTagFilter, _) if is_list => self.transport.send(without("Tag."), deadline).await,
            (Fault::IgnoresIdFilter, Some(ids)) => {
                let response = self.transport.send(without("DiskIds"), deadline).await?;
                let is_other = |row: &Value| ids.iter().all(|id| row["DiskId"] != id.as_str());
                Ok(change_rows(response, |rows| rows.retain(is_other)))
            }
            (Fault::RejectsIds(suffix), Some(ids)) if ids.iter().any(|id| id.ends_with(suffix)) => {
                let error = json!({"Code": "InvalidParameter.DiskIds", "RequestId": "R"});
                let response = Response::builder().status(400);
                Ok(response.body(error.to_string().into()).unwrap())
            }
            (Fault::HidesOwnedDisks, _) if is_disks => {
                let response = self.transport.send(request, deadline).await?;
                let is_other = |row: &Value| !is_owned(row);
                Ok(change_rows(response, |rows| rows.retain(is_other)))
            }
            (Fault::TruncatesPages, Some(ids)) if ids.len() > 1 => {
                let response = self.transport.send(request, deadline).await?;
                let first = change_rows(response, |rows| {
                    rows.sort_by_key(|row| row["CreationTime"].as_str().unwrap().to_owned());
                    rows.truncate(1);
                });
                Ok(with_field(first, "NextToken", "more"))
            }
            _ => self.transport.send(request, deadline).await,
        }
    }
}

/// A process that gets faulty responses from the same cloud.
pub(super) fn faulty_services(setup: &Setup, fault: Fault) -> Setup {
    let cloud = setup.cloud.clone();
    let transport = FaultyTransport {
        cloud: cloud.clone(),
        transport: MemoryTransport::new(&cloud),
        fault,
    };
    let disks = disk_services(Arc::new(client_over(&cloud, Arc::new(transport))), "test");
    Setup { cloud, disks }
}
