//! What instance types take, in a ConfigMap: the controller writes it, kubelet mounts it into the node's pods. So nodes need
//! neither credentials nor a token.
//!
//! All replicas of the controller write. A write counts only if nobody wrote since the look before it, and never takes
//! away what is there, so that they need no leader.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::access::soon;
use super::error::{code, is_conflict};
use super::{Cluster, Error, Result};
use crate::model::instance_types::{InstanceTypes, Takes};

/// The key in the ConfigMap, which is the file's name where it is mounted.
pub const FILE: &str = "instance-types.json";

/// The annotation that says when the cloud was last asked for all of it.
const ASKED: &str = "diskplugin.csi.example/asked-at";

/// How often a write is tried that others keep overtaking.
const TRIES: usize = 5;

/// The ConfigMap. It must be there: to make one is a right that cannot be limited to one name.
#[derive(Debug, Clone)]
pub struct Facts {
    api: Api<ConfigMap>,
    /// `namespace/name`, for people.
    place: String,
    name: String,
}

/// What the ConfigMap says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Said {
    /// What each type takes.
    pub types: InstanceTypes,
    /// When the cloud was last asked for all of it; none where that is not known.
    pub asked: Option<Timestamp>,
}

impl Facts {
    /// The ConfigMap of this name, in the namespace that the cluster was reached in.
    #[must_use]
    pub fn new(cluster: &Cluster, name: &str) -> Self {
        Self {
            api: Api::default_namespaced(cluster.client()),
            place: format!("{}/{name}", cluster.namespace()),
            name: name.to_owned(),
        }
    }

    /// What it says now. What cannot be read there counts as nothing, and is written anew.
    ///
    /// # Errors
    /// When the API server does not show it.
    pub async fn read(&self) -> Result<Said> {
        self.look().await.map(|(_, said)| said)
    }

    /// Adds these types to what it says; `asked` is set where the cloud was asked for all of it. Nothing is written
    /// that is there already. Answers what it says now.
    ///
    /// # Errors
    /// When the API server does not take it.
    pub async fn add(&self, types: &InstanceTypes, asked: Option<Timestamp>) -> Result<Said> {
        let step = self.step("write");
        for _ in 0..TRIES {
            let (version, said) = self.look().await?;
            let wanted = Said {
                types: merged(&said.types, types),
                asked: said.asked.max(asked),
            };
            if wanted == said {
                return Ok(said);
            }
            let mut annotations = BTreeMap::new();
            if let Some(asked) = wanted.asked {
                annotations.insert(ASKED, asked.to_string());
            }
            let patch = Patch::Merge(json!({
                "metadata": {"resourceVersion": version, "annotations": annotations},
                "data": {FILE: wanted.types.text()},
            }));
            let params = PatchParams::default();
            let written = soon().bound(self.api.patch(&self.name, &params, &patch));
            match written.await {
                Ok(Ok(_)) => return Ok(wanted),
                Ok(Err(error)) if is_conflict(&error) => {}
                Ok(Err(error)) => return Err(self.failed("write", Ok(error))),
                Err(late) => return Err(self.failed("write", Err(late))),
            }
        }
        Err(Error::Conflict { step })
    }

    /// Its version, and what it says.
    async fn look(&self) -> Result<(Option<String>, Said)> {
        let found = match soon().bound(self.api.get(&self.name)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return Err(self.failed("read", Ok(error))),
            Err(late) => return Err(self.failed("read", Err(late))),
        };
        let text = found.data.as_ref().and_then(|data| data.get(FILE));
        let types = match text.map(|text| InstanceTypes::parse(text)) {
            None => InstanceTypes::default(),
            Some(Ok(types)) => types,
            Some(Err(error)) => {
                tracing::warn!(
                    config_map = self.place,
                    "{FILE} is not as it must be, and is written anew: {error}"
                );
                InstanceTypes::default()
            }
        };
        let annotations = found.metadata.annotations.as_ref();
        let asked = annotations.and_then(|all| all.get(ASKED));
        let said = Said {
            types,
            asked: asked.and_then(|text| text.parse().ok()),
        };
        Ok((found.metadata.resource_version, said))
    }

    fn step(&self, verb: &str) -> String {
        format!("{verb} the ConfigMap {}", self.place)
    }

    fn failed(
        &self,
        verb: &str,
        outcome: std::result::Result<kube::Error, crate::base::Elapsed>,
    ) -> Error {
        let step = self.step(verb);
        match &outcome {
            Ok(error) if code(error) == Some(404) => Error::Missing {
                step,
                todo: "the chart makes it, and `helm upgrade` makes it again; or make an empty one",
            },
            _ => Error::of(&step, outcome),
        }
    }
}

/// What is there, and what is new. Categories that were known are not forgotten for want of an answer.
fn merged(there: &InstanceTypes, new: &InstanceTypes) -> InstanceTypes {
    let mut all = there.clone();
    for (name, takes) in &new.0 {
        let known = all.0.get(name).map(|before| before.categories.clone());
        let categories = match known {
            Some(known) if takes.categories.is_empty() => known,
            _ => takes.categories.clone(),
        };
        let takes = Takes {
            disk_quantity: takes.disk_quantity,
            categories,
        };
        all.0.insert(name.clone(), takes);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(disk_quantity: u32, categories: &[&str]) -> Takes {
        let categories = categories.iter().map(|name| name.parse().unwrap());
        Takes {
            disk_quantity,
            categories: categories.collect(),
        }
    }

    #[test]
    fn what_is_new_counts_and_nothing_is_forgotten() {
        let types = |rows: &[(&str, Takes)]| {
            let rows = rows.iter().cloned();
            InstanceTypes(rows.map(|(name, takes)| (name.to_owned(), takes)).collect())
        };
        let there = types(&[
            ("ecs.a", takes(9, &["cloud_essd"])),
            ("ecs.b", takes(9, &["cloud_essd"])),
        ]);
        let new = types(&[
            ("ecs.b", takes(17, &[])),
            ("ecs.c", takes(5, &["cloud_auto"])),
        ]);
        let wanted = types(&[
            ("ecs.a", takes(9, &["cloud_essd"])),
            ("ecs.b", takes(17, &["cloud_essd"])),
            ("ecs.c", takes(5, &["cloud_auto"])),
        ]);
        assert_eq!(merged(&there, &new), wanted);
        assert_eq!(merged(&wanted, &new), wanted);
    }
}
