//! The ConfigMap with the attach limits of instance types: the controller writes it, and kubelet mounts it into the
//! node pods, so that nodes need neither credentials nor a token.
//!
//! The active replica of the controller writes it. A write succeeds only if the object has not changed since the read
//! before it, and never removes entries.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::access::{CONFLICT, NOT_FOUND, request_unless};
use super::{Cluster, Error, Result};
use crate::base::LogOnce;
use crate::model::instance_types::{Document, InstanceTypes};

/// The key in the ConfigMap, which is the file's name where it is mounted.
pub const FILE: &str = "instance-types.json";

/// The annotation with the time of the last complete query of the cloud.
const QUERIED_AT: &str = "diskplugin.csi.example/queried-at";

/// Attempts of a write that conflicts with other writers.
const MAX_ATTEMPTS: usize = 5;

/// The ConfigMap. It must exist: the permission to create one cannot be limited to a name.
#[derive(Debug, Clone)]
pub struct InstanceTypesConfigMap {
    api: Api<ConfigMap>,
    /// `namespace/name`, for messages.
    display_name: String,
    name: String,
    log_once: Arc<LogOnce>,
}

/// The content of the ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PublishedLimits {
    /// The attach limits in the ConfigMap.
    pub document: Document,
    /// The time of the last complete query of the cloud, if known.
    pub queried_at: Option<Timestamp>,
}

impl InstanceTypesConfigMap {
    /// The ConfigMap with this name in the client's namespace.
    pub fn new(cluster: &Cluster, name: &str) -> Self {
        Self {
            api: Api::default_namespaced(cluster.client()),
            display_name: format!("{}/{name}", cluster.namespace()),
            name: name.to_owned(),
            log_once: Arc::default(),
        }
    }

    /// The current content. Unknown entries, of another version of the driver, are skipped.
    pub async fn read(&self) -> Result<PublishedLimits> {
        self.get().await.map(|(_, published)| published)
    }

    /// Adds these types to the ConfigMap and returns its new content; `queried_at` is set after a complete query of the
    /// cloud. An unchanged ConfigMap is not written.
    ///
    /// # Errors
    /// If the API server rejects the write, or the existing content is invalid, which is never overwritten.
    pub async fn add(&self, types: &InstanceTypes, queried_at: Option<Timestamp>) -> Result<PublishedLimits> {
        let step = self.step("write");
        for _ in 0..MAX_ATTEMPTS {
            let (version, published) = self.get().await?;
            let updated = PublishedLimits {
                document: published.document.with(types),
                // Not the maximum: the time of a wrong clock must not stay forever.
                queried_at: queried_at.or(published.queried_at),
            };
            if updated == published {
                return Ok(published);
            }
            let mut annotations = BTreeMap::new();
            if let Some(queried_at) = updated.queried_at {
                annotations.insert(QUERIED_AT, queried_at.to_string());
            }
            let patch = Patch::Merge(json!({
                "metadata": {"resourceVersion": version, "annotations": annotations},
                "data": {FILE: updated.document.text()},
            }));
            let params = PatchParams::default();
            let patched = self.api.patch(&self.name, &params, &patch);
            if request_unless(&[CONFLICT, NOT_FOUND], &step, patched).await?.is_some() {
                return Ok(updated);
            }
        }
        Err(Error::Conflict { step })
    }

    /// The version of the object, and its content.
    async fn get(&self) -> Result<(Option<String>, PublishedLimits)> {
        let step = self.step("read");
        let found = request_unless(&[NOT_FOUND], &step, self.api.get(&self.name)).await?;
        let found = found.ok_or(Error::Missing { step })?;
        let text = found.data.as_ref().and_then(|data| data.get(FILE));
        let document = match text.map(String::as_str).filter(|text| !text.trim().is_empty()) {
            None => Document::default(),
            Some(text) => Document::read(text).map_err(|error| Error::InvalidContent {
                step: self.step("use"),
                file: FILE,
                reason: error.to_string(),
            })?,
        };
        self.log_skipped(&document);
        let annotations = found.metadata.annotations.as_ref();
        let queried_at = annotations.and_then(|all| all.get(QUERIED_AT));
        let published = PublishedLimits {
            document,
            queried_at: queried_at.and_then(|text| text.parse().ok()),
        };
        Ok((found.metadata.resource_version, published))
    }

    /// Logs skipped entries when they change.
    fn log_skipped(&self, document: &Document) {
        let skipped = document.skipped().join("; ");
        if self.log_once.should_log("skipped", &skipped) {
            let config_map = &self.display_name;
            tracing::warn!(config_map, "{FILE} has unknown entries, which are kept: {skipped}");
        }
    }

    fn step(&self, verb: &str) -> String {
        format!("{verb} the ConfigMap {}", self.display_name)
    }
}
