//! The attachment limits of the node's instance type, from a file that the controller publishes in a ConfigMap. The
//! node records the last limits, so that a restarted node reports them while the file is missing. Without a limit, the
//! scheduler would place pods on a full node.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::observe::quick;
use super::{Error, Result};
use crate::base::{LogOnce, error_chain};
use crate::linux::{Host, Records};
use crate::model::instance_types::{AttachLimits, Document};
use crate::model::{Category, Failure};

/// The kind of these records. Their key is the instance type.
const KIND: &str = "instance-type";

/// The subject of log messages about the source of the limits. kubelet calls `NodeGetInfo` every
/// minute, so each message is logged once.
const TYPE: &str = "type";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstanceTypeSource {
    /// The file of instance types, which may appear later.
    pub file: Option<PathBuf>,
    pub instance_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LimitsRecord {
    disk_quantity: u32,
    categories: Vec<String>,
}

#[derive(Debug)]
pub(super) struct InstanceTypeLimits {
    pub(super) host: Arc<dyn Host>,
    pub(super) records: Records,
    pub(super) source: InstanceTypeSource,
    pub(super) log_once: LogOnce,
}

impl InstanceTypeLimits {
    /// The limits of the node's instance type, from the file or from the record. `None` if neither contains the type.
    pub(super) async fn attach_limits(&self) -> Result<Option<AttachLimits>> {
        let InstanceTypeSource { file, instance_type } = &self.source;
        if file.is_none() {
            return Ok(None);
        }
        let Some(instance_type) = instance_type.as_deref() else {
            // Records are stored by type, and the type of this node is unknown.
            if self.log_once.should_log(TYPE, "unknown") {
                tracing::warn!(
                    "the instance type is unknown: no limit and no disk categories are reported; see --instance-type"
                );
            }
            return Ok(None);
        };
        let listed = self.listed_limits(instance_type).await;
        let recorded = self.recorded_limits(instance_type).await;
        let problem = match &listed {
            Ok(Some(limits)) => {
                self.log_once.should_log(TYPE, "");
                if recorded.as_ref() != Some(limits) {
                    self.record_limits(instance_type, limits).await;
                }
                return listed;
            }
            Ok(None) => "the instance types file does not contain the type".to_owned(),
            Err(error) => error_chain(error),
        };
        match recorded {
            Some(_) if self.log_once.should_log(TYPE, &problem) => {
                tracing::warn!(instance_type, "{problem}; the recorded limits are used");
            }
            None if listed.is_ok() && self.log_once.should_log(TYPE, "missing") => {
                tracing::warn!(instance_type, "{problem}: no limit and no disk categories are reported");
            }
            Some(_) | None => {}
        }
        recorded.map_or(listed, |limits| Ok(Some(limits)))
    }

    /// The disk categories in the file. Empty if the file is missing or does not contain the type.
    pub(super) async fn listed_categories(&self) -> Vec<Category> {
        let Some(instance_type) = self.source.instance_type.as_deref() else {
            return Vec::new();
        };
        // `attach_limits` reports errors of the file.
        let limits = self.listed_limits(instance_type).await.ok().flatten();
        limits.map(|limits| limits.categories).unwrap_or_default()
    }

    /// The limits in the file. `None` if the file is missing or does not contain the type.
    async fn listed_limits(&self, instance_type: &str) -> Result<Option<AttachLimits>> {
        let Some(file) = &self.source.file else {
            return Ok(None);
        };
        let invalid = |reason: String| {
            let message = format!("{}: {reason}", file.display());
            Error::new(Failure::InvalidSettingsFile, message)
        };
        let text = self.host.text(quick(), file).await;
        let Some(text) = text.map_err(|error| invalid(error_chain(&error)))? else {
            return Ok(None);
        };
        let document = Document::read(&text).map_err(|error| invalid(error.to_string()))?;
        let skipped = document.skipped().join("; ");
        if self.log_once.should_log("skipped", &skipped) {
            let file = file.display();
            tracing::warn!(%file, "entries of the instance types file are ignored: {skipped}");
        }
        Ok(document.types().0.get(instance_type).cloned())
    }

    /// The recorded limits. `None` if the record is missing or cannot be read.
    async fn recorded_limits(&self, instance_type: &str) -> Option<AttachLimits> {
        if !is_key(instance_type) {
            return None;
        }
        let record: LimitsRecord = match self.records.get(KIND, instance_type).await {
            Ok(record) => record?,
            Err(error) => {
                let error = error_chain(&error);
                tracing::warn!(error, "cannot read the recorded attachment limits");
                return None;
            }
        };
        let categories = record.categories.iter().filter_map(|name| name.parse().ok());
        Some(AttachLimits {
            disk_quantity: record.disk_quantity,
            categories: categories.collect(),
        })
    }

    /// A failure is logged, and the limits are reported without a record.
    async fn record_limits(&self, instance_type: &str, limits: &AttachLimits) {
        let names = limits.categories.iter().map(Category::to_string);
        let record = LimitsRecord {
            disk_quantity: limits.disk_quantity,
            categories: names.collect(),
        };
        if is_key(instance_type)
            && let Err(error) = self.records.put(KIND, instance_type, &record).await
        {
            let error = error_chain(&error);
            tracing::warn!(error, "cannot record the attachment limits");
        }
    }
}

/// Whether the instance type is a safe file name. It comes from the metadata service or from a flag.
fn is_key(instance_type: &str) -> bool {
    !instance_type.is_empty() && !instance_type.starts_with('.') && !instance_type.contains('/')
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::base::log_capture::LogCapture;
    use crate::linux::fake::{FakeHost, FakeState};
    use crate::model::instance_types::InstanceTypes;

    const FILE: &str = "/config/types.json";

    /// The limits in a new process with this file, and with the records of an earlier one.
    fn limits_with(state_dir: &Path, text: Option<&str>) -> InstanceTypeLimits {
        let file = text.map(|text| (PathBuf::from(FILE), text.to_owned()));
        InstanceTypeLimits {
            host: Arc::new(FakeHost::new(FakeState {
                files: file.into_iter().collect(),
                ..FakeState::default()
            })),
            records: Records::new(state_dir),
            source: InstanceTypeSource {
                file: Some(FILE.into()),
                instance_type: Some("ecs.small".to_owned()),
            },
            log_once: LogOnce::default(),
        }
    }

    fn text(name: &str, quantity: u32) -> String {
        let limits = AttachLimits {
            disk_quantity: quantity,
            categories: vec!["cloud_essd".parse().unwrap()],
        };
        let types = InstanceTypes([(name.to_owned(), limits)].into());
        Document::default().with(&types).text()
    }

    #[tokio::test]
    async fn a_restarted_node_uses_the_recorded_limits_until_the_file_changes() {
        let state_dir = tempfile::tempdir().unwrap();
        let quantity = async |text: Option<String>| {
            let limits = limits_with(state_dir.path(), text.as_deref());
            let limits = limits.attach_limits().await.unwrap();
            limits.map(|limits| (limits.disk_quantity, limits.categories.len()))
        };
        assert_eq!(quantity(None).await, None);
        assert_eq!(quantity(Some(text("ecs.small", 9))).await, Some((9, 1)));
        // The file is missing, does not contain the type, or is invalid.
        for text in [None, Some(text("ecs.other", 5)), Some("{".to_owned())] {
            assert_eq!(quantity(text).await, Some((9, 1)));
        }
        assert_eq!(quantity(Some(text("ecs.small", 17))).await, Some((17, 1)));
        assert_eq!(quantity(None).await, Some((17, 1)));
    }

    #[tokio::test]
    async fn unknown_fields_of_a_newer_file_are_ignored() {
        let state_dir = tempfile::tempdir().unwrap();
        let text = r#"{"format": 2, "instanceTypes": {
            "ecs.small": {"diskQuantity": 9, "slots": 1, "categories": ["cloud_next", "cloud_essd"]},
            "ecs.other": {"quantity": 4}}}"#;
        let limits = limits_with(state_dir.path(), Some(text)).attach_limits().await.unwrap();
        let limits = limits.unwrap();
        assert_eq!((limits.disk_quantity, limits.categories.len()), (9, 1));
    }

    #[tokio::test]
    async fn only_changes_are_logged() {
        let (log, _guard) = LogCapture::start();
        let state_dir = tempfile::tempdir().unwrap();
        let logged = async |text: Option<&str>, instance_type: Option<&str>| {
            let mut limits = limits_with(state_dir.path(), text);
            limits.source.instance_type = instance_type.map(str::to_owned);
            limits.attach_limits().await.unwrap();
            let first = log.lines().len();
            for _ in 0..3 {
                limits.attach_limits().await.unwrap();
            }
            (first, log.lines().len())
        };
        let odd = r#"{"instanceTypes": {"ecs.small": {"diskQuantity": 9, "slots": 1}}}"#;
        for (text, instance_type) in [
            (None, None),
            (None, Some("ecs.small")),
            (Some(odd), Some("ecs.small")),
            // Uses the recorded limits.
            (None, Some("ecs.small")),
            (Some("{"), Some("ecs.small")),
        ] {
            let (first, more) = logged(text, instance_type).await;
            assert!((1..=2).contains(&first), "{text:?} {instance_type:?}: {first}");
            assert_eq!(more, 0, "{text:?} {instance_type:?}");
        }
    }

    #[tokio::test]
    async fn an_unsafe_instance_type_is_reported_but_not_recorded() {
        let state_dir = tempfile::tempdir().unwrap();
        for instance_type in ["../escape", ".hidden", ""] {
            let mut limits = limits_with(state_dir.path(), Some(&text(instance_type, 9)));
            limits.source.instance_type = Some(instance_type.to_owned());
            assert_eq!(limits.attach_limits().await.unwrap().unwrap().disk_quantity, 9);
        }
        assert_eq!(std::fs::read_dir(state_dir.path()).unwrap().count(), 0);
    }
}
