//! Reads the attach limits of instance types for the nodes, which have no credentials.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ecs::{Client, DescribeInstances, DescribeStock};

use crate::base::{Deadline, error_chain};
use crate::disk::Error;
use crate::disk::error::cloud;
use crate::model::instance_types::{AttachLimits, InstanceTypes};
use crate::model::{Category, InstanceId};

const TYPE_BATCH: usize = 10;

const INSTANCE_BATCH: usize = 100;

/// The combined result of several calls, and the first failure of one.
type Partial<T> = (T, Option<Error>);

#[derive(Debug)]
pub struct InstanceTypeCatalog {
    ecs: Arc<Client>,
}

impl InstanceTypeCatalog {
    pub(in crate::disk) fn new(ecs: Arc<Client>) -> Self {
        Self { ecs }
    }

    /// The attach limits of these instance types, without types that the cloud does not list or reports without disks.
    /// The list of categories is empty if the cloud does not report it.
    /// Types are queried in batches; a failed batch does not prevent the others.
    pub async fn attach_limits(&self, deadline: Deadline, names: &BTreeSet<String>) -> Partial<InstanceTypes> {
        let names: Vec<String> = names.iter().cloned().collect();
        let (mut types, mut failure) = Partial::<InstanceTypes>::default();
        for batch in names.chunks(TYPE_BATCH) {
            let rows = self.ecs.describe_instance_types(deadline, batch).await;
            let rows = rows.map_err(|error| failure.get_or_insert(cloud("describe the instance types")(error)));
            // The cloud reports some types without their number of disks.
            let rows = rows.into_iter().flatten();
            for row in rows.filter(|row| row.disk_quantity > 0) {
                let (disk_quantity, name) = (row.disk_quantity, row.name);
                let categories = self.categories_of(deadline, &name).await;
                let limits = AttachLimits {
                    disk_quantity,
                    categories,
                };
                types.0.insert(name, limits);
            }
        }
        (types, failure)
    }

    /// The types of these instances, without instances that no longer exist. Instances are queried in batches.
    pub async fn types_of_instances(
        &self,
        deadline: Deadline,
        instances: &BTreeSet<InstanceId>,
    ) -> Partial<BTreeMap<InstanceId, String>> {
        let instances: Vec<InstanceId> = instances.iter().cloned().collect();
        let (mut types, mut failure) = Partial::<BTreeMap<InstanceId, String>>::default();
        for batch in instances.chunks(INSTANCE_BATCH) {
            let query = DescribeInstances {
                ids: Some(batch.to_vec()),
                ..DescribeInstances::default()
            };
            let page = self.ecs.describe_instances(deadline, &query).await;
            let page = page.map_err(|error| failure.get_or_insert(cloud("describe the instances")(error)));
            let rows = page.into_iter().flat_map(|page| page.rows);
            types.extend(rows.map(|row| (row.id, row.instance_type)));
        }
        (types, failure)
    }

    /// Categories of data disks that the type supports, in stock or not: existing disks can be attached.
    async fn categories_of(&self, deadline: Deadline, name: &str) -> Vec<Category> {
        let query = DescribeStock {
            instance_type: Some(name.to_owned()),
            ..DescribeStock::default()
        };
        match self.ecs.describe_available_resource(deadline, &query).await {
            Ok(zones) => {
                let listed = zones.into_iter().flat_map(|zone| zone.categories);
                let listed: Vec<_> = listed.map(|stock| stock.category).collect();
                let known = Category::KNOWN.iter().cloned();
                known.filter(|category| listed.contains(category)).collect()
            }
            Err(error) => {
                let error = error_chain(&error);
                tracing::warn!(
                    instance_type = name,
                    error,
                    "cannot read the disk categories of the instance type"
                );
                Vec::new()
            }
        }
    }
}
