//! Reads the instances of nodes that are not ready, and sets and removes the taint.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::rule::{Evidence, Rule, is_running, is_suspect};
use super::{FencingConfig, MAX_READ};
use crate::base::{Deadline, LogOnce, error_chain};
use crate::cluster::events::{Cause, ClusterEvent, EventRecorder};
use crate::cluster::nodes::{Member, Nodes};
use crate::cluster::{Cluster, out_of_service};
use crate::disk::{DiskServices, InstanceStates};
use crate::model::DriverName;

/// The pause between two reads, which doubles while nothing changes.
const PAUSE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(30));

/// Instances that one call returns: nodes of interest, known ready nodes, one of which must be running, and new ones.
const MAX_PER_CALL: usize = 100;
const OF_INTEREST: usize = 80;
const CANARIES: usize = 10;

const NOT_PROVEN: &str = "the state of the instances of nodes that are not ready is not proven: the response lacks the \
                          running instance of a ready node. Check that the access key is of the account and region of \
                          the nodes, and has ecs:DescribeInstances";

#[derive(Debug)]
pub struct Fencing {
    pub cluster: Cluster,
    pub nodes: Nodes,
    pub disks: Arc<DiskServices>,
    pub driver: DriverName,
    pub events: EventRecorder,
}

/// Fences nodes, while the process runs.
pub async fn run(mut fencing: Fencing, config: FencingConfig) {
    let mut rule = Rule::new(config);
    let failures = LogOnce::default();
    let mut pause = PAUSE.0;
    loop {
        let members = fencing.nodes.members();
        let is_waiting = |member: &Member| fencing.is_of_interest(member) || rule.is_new(member);
        if !members.iter().any(is_waiting) {
            rule.reset();
            fencing.nodes.changed().await;
            pause = PAUSE.0;
            continue;
        }
        match fencing.check(&mut rule, &members).await {
            Ok(()) => drop(failures.clear(&"")),
            Err(error) if failures.should_log("", &error) => {
                tracing::warn!("fencing: {error}; it is retried");
            }
            Err(_) => {}
        }
        let earliest = Instant::now() + PAUSE.0;
        let due = rule.next_due().filter(|due| *due > Instant::now());
        let next = due.map_or(Instant::now() + pause, |due| due.min(Instant::now() + pause));
        pause = (pause * 2).min(PAUSE.1);
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = fencing.nodes.changed() => {
                pause = PAUSE.0;
                tokio::time::sleep_until(next.min(earliest)).await;
            }
        }
    }
}

impl Fencing {
    fn is_of_interest(&self, member: &Member) -> bool {
        match &member.out_of_service {
            // Until it is ready, the taint stays.
            Some(value) => value == self.driver.as_str() && member.is_ready,
            None => is_suspect(member),
        }
    }

    /// Reads the instances of interest in calls with canaries, and acts on each result.
    async fn check(&self, rule: &mut Rule, members: &[Member]) -> Result<(), String> {
        let of_interest = members.iter().filter(|member| self.is_of_interest(member));
        let ready = members
            .iter()
            .filter(|member| member.is_ready && !self.is_of_interest(member));
        let (new, known): (Vec<_>, Vec<_>) = ready.partition(|member| rule.is_new(member));
        let known = known.into_iter().take(CANARIES);
        let asked = of_interest.take(OF_INTEREST).chain(known).chain(new).take(MAX_PER_CALL);
        let ids: Vec<_> = asked.map(|member| member.instance.clone()).collect();
        let read = self.disks.instances.states(Deadline::after(MAX_READ), &ids).await;
        let read = read
            .inspect_err(|_| rule.reset())
            .map_err(|error| error_chain(&error))?;
        let Some(read) = read.filter(|read| rule.record(read, members)) else {
            rule.reset();
            return Err(NOT_PROVEN.to_owned());
        };
        // A node that cannot be changed does not keep others waiting.
        let (due, held) = rule.due(members);
        let mut outcome = match held {
            0 => Ok(()),
            _ => Err(format!(
                "{held} nodes that are provably down are not fenced, because the share of --fencing-max-nodes-percent is \
                 out of service already"
            )),
        };
        for (member, evidence) in due {
            outcome = outcome.and(self.fence(member, evidence, rule).await);
        }
        for member in members.iter().filter(|member| self.has_recovered(member, &read)) {
            outcome = outcome.and(self.unfence(member).await);
        }
        outcome
    }

    fn has_recovered(&self, member: &Member, read: &InstanceStates) -> bool {
        let is_fenced = member.out_of_service.as_deref() == Some(self.driver.as_str());
        is_fenced && member.is_ready && is_running(member, read)
    }

    async fn fence(&self, member: &Member, evidence: Evidence, rule: &Rule) -> Result<(), String> {
        let added = out_of_service::add(&self.cluster, member, &self.driver, rule.valid_until()).await;
        if added.map_err(|error| error_chain(&error))? {
            let reason = format!("the node is not ready, and the cloud {evidence}");
            tracing::warn!(node = member.node, node.id = %member.instance, "marked the node as out of service: {reason}");
            let node = member.instance.clone();
            self.record(member, Cause::Fenced { node, reason });
        }
        Ok(())
    }

    async fn unfence(&self, member: &Member) -> Result<(), String> {
        let call = async {
            if out_of_service::has_evicted_pods(&self.cluster, member, &self.driver).await? {
                tracing::debug!(
                    node = member.node,
                    "the taint stays until the evicted pods of the node are gone"
                );
                return Ok(false);
            }
            out_of_service::remove(&self.cluster, member, &self.driver).await
        };
        if call.await.map_err(|error: crate::cluster::Error| error_chain(&error))? {
            tracing::info!(node = member.node, node.id = %member.instance, "the node is in service again");
            let node = member.instance.clone();
            self.record(member, Cause::Unfenced { node });
        }
        Ok(())
    }

    fn record(&self, member: &Member, cause: Cause) {
        if let Some(permit) = self.events.permit(cause.reason(), &member.node) {
            permit.record(ClusterEvent { cause, claim: None });
        }
    }
}
