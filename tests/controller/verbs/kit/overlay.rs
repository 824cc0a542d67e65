//! A cloud in which the access key can become that of another account, and rows can have any status.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use http::{Request, Response};
use serde_json::Value;
use tokio_util::bytes::Bytes;

use diskplugin::base::Deadline;
use diskplugin::model::DiskId;
use ecs::Client;
use ecs::credential::{CredentialError, CredentialProvider, Credentials};
use ecs::transport::{Lost, Transport};
use fake_ecs::Cloud;

use super::altered::{change_rows, is_action};
use crate::common::memory_cloud::{MemoryTransport, settings};

#[derive(Debug)]
pub(crate) struct Overlay {
    /// The first one; all have the same time and region.
    cloud: Cloud,
    accounts: Vec<(MemoryTransport, Credentials)>,
    selected: AtomicUsize,
    statuses: Mutex<BTreeMap<DiskId, String>>,
}

/// The access key of the selected account.
#[derive(Debug)]
struct SelectedKey(Arc<Overlay>);

/// The selected account.
#[derive(Debug)]
struct SelectedAccount(Arc<Overlay>);

impl Overlay {
    /// One account per cloud, each with an access key of its own; the key is that of the first.
    pub(crate) fn new(clouds: &[&Cloud]) -> Arc<Self> {
        let account = |cloud: &&Cloud| {
            let (id, secret) = cloud.access_key();
            (MemoryTransport::new(cloud), Credentials::new(id, secret))
        };
        Arc::new(Self {
            cloud: clouds[0].clone(),
            accounts: clouds.iter().map(account).collect(),
            selected: AtomicUsize::new(0),
            statuses: Mutex::default(),
        })
    }

    /// A client whose key is that of the selected account.
    pub(crate) fn client(self: &Arc<Self>) -> Arc<Client> {
        let settings = settings(&self.cloud, Arc::new(SelectedKey(Arc::clone(self))));
        let transport = SelectedAccount(Arc::clone(self));
        Arc::new(Client::over(Arc::new(transport), settings))
    }

    /// The mounted Secret becomes the key of this account.
    pub(crate) fn use_account(&self, account: usize) {
        self.selected.store(account, Ordering::Relaxed);
    }

    /// Rows of the disk show this status.
    pub(crate) fn show_status(&self, disk: &DiskId, status: Option<&str>) {
        let mut statuses = self.statuses.lock().unwrap();
        match status {
            Some(status) => drop(statuses.insert(disk.clone(), status.to_owned())),
            None => drop(statuses.remove(disk)),
        }
    }

    fn account(&self) -> &(MemoryTransport, Credentials) {
        &self.accounts[self.selected.load(Ordering::Relaxed)]
    }
}

#[async_trait]
impl CredentialProvider for SelectedKey {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        Ok(self.0.account().1.clone())
    }
}

#[async_trait]
impl Transport for SelectedAccount {
    async fn send(&self, request: Request<String>, deadline: Deadline) -> Result<Response<Bytes>, Lost> {
        let is_list = is_action(&request, "DescribeDisks");
        let response = self.0.account().0.send(request, deadline).await?;
        let statuses = self.0.statuses.lock().unwrap().clone();
        if !is_list || statuses.is_empty() {
            return Ok(response);
        }
        Ok(change_rows(response, |rows| {
            for row in rows {
                let id = row["DiskId"].as_str().unwrap().parse().unwrap();
                if let Some(status) = statuses.get::<DiskId>(&id) {
                    row["Status"] = Value::from(status.as_str());
                }
            }
        }))
    }
}
