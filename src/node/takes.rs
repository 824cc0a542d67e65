//! What the node's instance type takes, as the cluster tells it in a file. The node keeps what it was last told, so that
//! a restart answers the same while the file is not there: a limit that goes and comes again would send pods to a node that is
//! full.

use serde::{Deserialize, Serialize};

use super::info::Types;
use super::observe::quick;
use super::{Error, Node, Result};
use crate::base::chain::chain;
use crate::model::Category;
use crate::model::instance_types::{Document, Takes};

/// The kind of these records; their key is the instance type.
const KIND: &str = "instance-type";

/// The matter that the log is told of once, for kubelet asks every minute: where what is told of the type comes from.
const TYPE: &str = "type";

/// What an instance type took when it was last told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Told {
    disk_quantity: u32,
    categories: Vec<String>,
}

impl Node {
    /// What the node's instance type takes: as the file says, else as it said when it last did. None where nobody
    /// ever said.
    ///
    /// # Errors
    /// When the file cannot be read or is not as it must be, and nothing was told before.
    pub(super) async fn takes(&self) -> Result<Option<Takes>> {
        let Types { file, own } = &self.settings.types;
        if file.is_none() {
            return Ok(None);
        }
        let Some(own) = own.as_deref() else {
            // What was told is of a type, and this one is not known.
            if self.news.is_new(TYPE, "not known") {
                tracing::warn!(
                    "the instance type is not known: no limit and no categories are told; see --instance-type"
                );
            }
            return Ok(None);
        };
        let said = self.said(own).await;
        let before = self.told(own).await;
        match (said, before) {
            (Ok(Some(takes)), before) => {
                self.news.is_new(TYPE, "");
                if before.as_ref() != Some(&takes) {
                    self.note_told(own, &takes).await;
                }
                Ok(Some(takes))
            }
            (Ok(None), Some(takes)) => {
                if self.news.is_new(TYPE, "nothing now") {
                    tracing::info!(
                        instance_type = own,
                        "nothing is told of the type now; what was told before counts"
                    );
                }
                Ok(Some(takes))
            }
            (Ok(None), None) => {
                if self.news.is_new(TYPE, "nothing yet") {
                    tracing::warn!(
                        instance_type = own,
                        "nothing is told of the type yet: no limit and no categories are told"
                    );
                }
                Ok(None)
            }
            (Err(error), Some(takes)) => {
                let error = chain(&error);
                if self.news.is_new(TYPE, &error) {
                    tracing::warn!(instance_type = own, error, "what was told before counts");
                }
                Ok(Some(takes))
            }
            (Err(error), None) => Err(error),
        }
    }

    /// The categories that the file says now; none where it says nothing.
    pub(super) async fn said_categories(&self) -> Vec<Category> {
        let Some(own) = self.settings.types.own.as_deref() else {
            return Vec::new();
        };
        // What is wrong is told when the node is asked what it is.
        let said = self.said(own).await.ok().flatten();
        said.map(|takes| takes.categories).unwrap_or_default()
    }

    /// What the file says of a type; none where there is no file or it does not name the type.
    async fn said(&self, own: &str) -> Result<Option<Takes>> {
        let Some(file) = &self.settings.types.file else {
            return Ok(None);
        };
        let wrong = |reason: String| Error::Setting {
            file: file.clone(),
            reason,
        };
        let text = self.host.text(quick(), file).await;
        let Some(text) = text.map_err(|error| wrong(chain(&error)))? else {
            return Ok(None);
        };
        let document = Document::read(&text).map_err(|error| wrong(error.to_string()))?;
        let skipped = document.skipped().join("; ");
        if self.news.is_new("skipped", &skipped) {
            let file = file.display();
            tracing::warn!(%file, "not understood, and does not count: {skipped}");
        }
        Ok(document.types().0.get(own).cloned())
    }

    /// What was told last; a record that cannot be read tells nothing.
    async fn told(&self, own: &str) -> Option<Takes> {
        if !is_key(own) {
            return None;
        }
        let told: Told = match self.records.get(quick(), KIND, own).await {
            Ok(told) => told?,
            Err(error) => {
                tracing::warn!(
                    error = chain(&error),
                    "the record of the instance type cannot be read"
                );
                return None;
            }
        };
        let names = told.categories.iter();
        Some(Takes {
            disk_quantity: told.disk_quantity,
            categories: names.filter_map(|name| name.parse().ok()).collect(),
        })
    }

    /// Keeps what is told. A node that cannot keep it answers all the same.
    async fn note_told(&self, own: &str, takes: &Takes) {
        let names = takes.categories.iter().map(Category::to_string);
        let told = Told {
            disk_quantity: takes.disk_quantity,
            categories: names.collect(),
        };
        if !is_key(own) {
            return;
        }
        if let Err(error) = self.records.put(quick(), KIND, own, &told).await {
            let error = chain(&error);
            tracing::warn!(
                error,
                "what the instance type takes is not kept for a restart"
            );
        }
    }
}

/// Whether it can be the name of a file: it comes from the metadata service, or from a person.
fn is_key(own: &str) -> bool {
    !own.is_empty() && !own.starts_with('.') && !own.contains('/')
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use super::*;
    use crate::base::heard::Heard;
    use crate::host::fake::{Fake, State};
    use crate::model::instance_types::InstanceTypes;
    use crate::node::Settings;

    const FILE: &str = "/config/types.json";

    /// A node that was just started, with this file and what an earlier one has kept.
    fn node(kept: &Path, text: Option<&str>) -> Node {
        let settings = Settings {
            id: "i-1".parse().unwrap(),
            zone: "z-a".parse().unwrap(),
            max_volumes: None,
            categories: Vec::new(),
            types: Types {
                file: Some(FILE.into()),
                own: Some("ecs.small".to_owned()),
            },
            device_dir: None,
            kubelet_dir: kept.to_owned(),
            state_dir: kept.to_owned(),
        };
        let file = text.map(|text| (PathBuf::from(FILE), text.to_owned()));
        let fake = Arc::new(Fake::new(State {
            files: file.into_iter().collect(),
            ..State::default()
        }));
        Node::new(Arc::clone(&fake) as _, fake, settings)
    }

    fn text(name: &str, quantity: u32) -> String {
        let takes = Takes {
            disk_quantity: quantity,
            categories: vec!["cloud_essd".parse().unwrap()],
        };
        InstanceTypes([(name.to_owned(), takes)].into()).text()
    }

    #[tokio::test]
    async fn after_a_restart_what_was_told_last_counts_until_something_else_is_told() {
        let kept = tempfile::tempdir().unwrap();
        let quantity = async |text: Option<String>| {
            let takes = node(kept.path(), text.as_deref()).takes().await.unwrap();
            takes.map(|takes| (takes.disk_quantity, takes.categories.len()))
        };
        assert_eq!(quantity(None).await, None);
        assert_eq!(quantity(Some(text("ecs.small", 9))).await, Some((9, 1)));
        // The file has gone, does not name the type, or is no such file.
        for text in [None, Some(text("ecs.other", 5)), Some("{".to_owned())] {
            assert_eq!(quantity(text).await, Some((9, 1)));
        }
        assert_eq!(quantity(Some(text("ecs.small", 17))).await, Some((17, 1)));
        assert_eq!(quantity(None).await, Some((17, 1)));
    }

    #[tokio::test]
    async fn of_a_file_of_another_version_what_is_known_counts() {
        let kept = tempfile::tempdir().unwrap();
        let text = r#"{"format": 2, "instanceTypes": {
            "ecs.small": {"diskQuantity": 9, "slots": 1, "categories": ["cloud_next", "cloud_essd"]},
            "ecs.other": {"quantity": 4}}}"#;
        let takes = node(kept.path(), Some(text)).takes().await.unwrap();
        let takes = takes.unwrap();
        assert_eq!((takes.disk_quantity, takes.categories.len()), (9, 1));
    }

    #[tokio::test]
    async fn the_log_has_what_is_new_and_not_each_question() {
        let (log, _guard) = Heard::listen();
        let kept = tempfile::tempdir().unwrap();
        let ask = async |text: Option<&str>, own: Option<&str>| {
            let mut node = node(kept.path(), text);
            node.settings.types.own = own.map(str::to_owned);
            node.info().await.unwrap();
            let first = log.lines().len();
            for _ in 0..3 {
                node.info().await.unwrap();
            }
            (first, log.lines().len())
        };
        let odd = r#"{"instanceTypes": {"ecs.small": {"diskQuantity": 9, "slots": 1}}}"#;
        for (text, own) in [
            (None, None),
            (None, Some("ecs.small")),
            // What is skipped, and the limit.
            (Some(odd), Some("ecs.small")),
            // What was told before counts.
            (None, Some("ecs.small")),
            (Some("{"), Some("ecs.small")),
        ] {
            let (first, more) = ask(text, own).await;
            assert!((1..=2).contains(&first), "{text:?} {own:?}: {first}");
            assert_eq!(more, 0, "{text:?} {own:?}");
        }
    }

    #[tokio::test]
    async fn a_type_that_is_no_name_of_a_file_is_told_of_and_not_kept() {
        let kept = tempfile::tempdir().unwrap();
        for own in ["../escape", ".hidden", ""] {
            let mut node = node(kept.path(), Some(&text(own, 9)));
            node.settings.types.own = Some(own.to_owned());
            assert_eq!(node.takes().await.unwrap().unwrap().disk_quantity, 9);
        }
        assert_eq!(std::fs::read_dir(kept.path()).unwrap().count(), 0);
    }
}
