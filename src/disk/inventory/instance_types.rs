//! What the instance types of the region's machines take: nodes have no credentials to ask for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::Deadline;
use crate::base::error_chain;
use crate::cloud::{DescribeInstances, DescribeStock, EcsApi};
use crate::disk::error::cloud;
use crate::disk::{Error, Result};
use crate::model::instance_types::{AttachLimits, InstanceTypes};
use crate::model::{Category, InstanceId};

/// Maximum number of types in one call (`DescribeInstanceTypes`).
const BATCH: usize = 10;

/// Maximum number of instances in one call (`DescribeInstances`).
const MACHINES: usize = 100;

/// What some calls returned, of which others may have failed.
#[derive(Debug, Default)]
pub struct Partial<T> {
    pub found: T,
    pub failed: Option<Error>,
}

impl<T> Partial<T> {
    /// The result of one call; none after a failure, which is noted.
    fn note<R>(&mut self, outcome: Result<R>) -> Option<R> {
        outcome
            .map_err(|error| self.failed.get_or_insert(error))
            .ok()
    }

    /// Everything, or the failure.
    pub fn all(self) -> Result<T> {
        self.failed.map_or(Ok(self.found), Err)
    }
}

#[derive(Debug)]
pub struct InstanceTypeCatalog {
    ecs: Arc<dyn EcsApi>,
}

impl InstanceTypeCatalog {
    pub(in crate::disk) fn new(ecs: Arc<dyn EcsApi>) -> Self {
        Self { ecs }
    }

    /// What each instance type supported of which the region has a machine now. A type whose categories
    /// the cloud does not tell is there without them.
    pub async fn in_region(&self, deadline: Deadline) -> Result<InstanceTypes> {
        let names = self.types_here(deadline).await?;
        self.limits_of(deadline, &names).await.all()
    }

    /// The attach limits of these instance types. Types that the cloud does not know, or reports without disks, are omitted.
    /// Types are queried in batches; a failed batch does not prevent the others.
    pub async fn limits_of(
        &self,
        deadline: Deadline,
        names: &BTreeSet<String>,
    ) -> Partial<InstanceTypes> {
        let names: Vec<String> = names.iter().cloned().collect();
        let mut types = Partial::<InstanceTypes>::default();
        for some in names.chunks(BATCH) {
            let rows = self.ecs.describe_instance_types(deadline, some).await;
            let rows = types.note(rows.map_err(cloud("describe the instance types")));
            // The cloud knows types on which it says nothing of disks.
            let rows = rows.into_iter().flatten();
            for row in rows.filter(|row| row.disk_quantity > 0) {
                let (disk_quantity, name) = (row.disk_quantity, row.name);
                let categories = self.categories_of(deadline, &name).await;
                let supported = AttachLimits {
                    disk_quantity,
                    categories,
                };
                types.found.0.insert(name, supported);
            }
        }
        types
    }

    /// The types of these instances; one that is not there any more is left out. They are asked for in groups, as types are.
    pub async fn of_instances(
        &self,
        deadline: Deadline,
        instances: &BTreeSet<InstanceId>,
    ) -> Partial<BTreeMap<InstanceId, String>> {
        let instances: Vec<InstanceId> = instances.iter().cloned().collect();
        let mut types = Partial::<BTreeMap<InstanceId, String>>::default();
        for some in instances.chunks(MACHINES) {
            let query = DescribeInstances {
                ids: Some(some.to_vec()),
                ..DescribeInstances::default()
            };
            let page = self.ecs.describe_instances(deadline, &query).await;
            let page = types.note(page.map_err(cloud("describe the instances")));
            let rows = page.into_iter().flat_map(|page| page.rows);
            (types.found).extend(rows.map(|row| (row.id, row.instance_type)));
        }
        types
    }

    async fn types_here(&self, deadline: Deadline) -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        let mut query = DescribeInstances::default();
        loop {
            let page = self.ecs.describe_instances(deadline, &query).await;
            let page = page.map_err(cloud("describe the instances"))?;
            names.extend(page.rows.into_iter().map(|row| row.instance_type));
            query.next = page.next;
            if query.next.is_none() {
                return Ok(names);
            }
        }
    }

    /// Categories of data disks for the type, in stock now or not: what is attached stays.
    async fn categories_of(&self, deadline: Deadline, name: &str) -> Vec<Category> {
        let query = DescribeStock {
            instance_type: Some(name.to_owned()),
            ..DescribeStock::default()
        };
        match self.ecs.describe_available_resource(deadline, &query).await {
            Ok(zones) => {
                let listed = zones.into_iter().flat_map(|zone| zone.categories);
                let listed: Vec<_> = listed.map(|stock| stock.category).collect();
                let known = Category::KNOWN.into_iter();
                known.filter(|category| listed.contains(category)).collect()
            }
            Err(error) => {
                let error = error_chain(&error);
                tracing::warn!(instance_type = name, error, "its categories are not known");
                Vec::new()
            }
        }
    }
}
