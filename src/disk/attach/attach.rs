//! Attaching: order first, read only after a refusal, return when the disk is in use on the node.

use std::time::Duration;

use tokio::time::Instant;

use super::Attacher;
use super::order::Order;
use super::queue::Operation;
use super::takeover::{Takeover, refuses_force};
use crate::base::Deadline;
use crate::cloud::view::Observation;
use crate::cloud::{self as api, AttachDisk, Condition, Kind};
use crate::disk::Result;
use crate::disk::error::Error;
use crate::model::{Disk, DiskId, DiskStatus, InstanceId};

#[derive(Debug)]
pub(super) struct Attached {
    pub(super) row: Disk,
    /// Whether this call has certainly attached it.
    pub(super) by_this_call: bool,
}

/// How old the observation may be that an attempt by force is based on, the call included.
const LONGEST_FORCED: Duration = Duration::from_secs(5);

impl Attacher {
    /// Attaches the disk to the node. A disk that is attached there already is success.
    ///
    /// # Errors
    /// [`Error::InUseElsewhere`] when another node holds it: it is left there. At the deadline, the last refusal.
    pub async fn attach(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<Disk> {
        let attached = self.attach_tracked(deadline, disk, node).await?;
        Ok(attached.row)
    }

    /// As [`Attacher::attach`], and says whether this call has attached it.
    pub(super) async fn attach_tracked(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<Attached> {
        let mut order = Order::new(self, Operation::Attach, deadline, disk, node);
        let mut takeover = Takeover::default();
        let mut is_ephemeral = self.journal.ephemeral.contains(disk);
        loop {
            order.admit().await?;
            let soon = deadline.at_most(LONGEST_FORCED);
            takeover.forced = self.may_force(&mut takeover, disk, node, soon).await;
            let until = if takeover.forced { soon } else { deadline };
            let request = AttachDisk {
                disk: disk.clone(),
                instance: node.clone(),
                force: takeover.forced,
                delete_with_instance: is_ephemeral,
            };
            self.journal.attach(disk);
            let Err(refusal) = self.order_attach(until, &request).await else {
                order.accepted();
                let attached = self.wait_attached(deadline, disk, node);
                let row = order.hold(attached).await?;
                return Ok(Attached {
                    row,
                    by_this_call: true,
                });
            };
            if order.yields(&refusal) {
                continue;
            }
            if !is_ephemeral && self.is_ephemeral(deadline, disk, &refusal).await {
                is_ephemeral = true;
                continue;
            }
            if let Some(row) = self
                .after_refusal(&mut order, &mut takeover, refusal)
                .await?
            {
                return Ok(Attached {
                    row,
                    by_this_call: false,
                });
            }
        }
    }

    /// Orders the attachment. The journal has it from before the order, so that it is known also if this call is
    /// cancelled, until it is certain that nothing was done.
    async fn order_attach(&self, deadline: Deadline, request: &AttachDisk) -> api::Result<()> {
        let (disk, node) = (&request.disk, &request.instance);
        let is_known = self.journal.attached.lately(disk, node);
        if !is_known {
            self.journal.attached.on_its_way(disk, node);
        }
        let outcome = self.ecs.attach_disk(deadline, request).await;
        match &outcome {
            Ok(()) => self.journal.attached.on_its_way(disk, node),
            Err(error) if error.may_have_taken_effect() => {}
            Err(_) if is_known => {}
            Err(_) => self.journal.attached.forget(disk, node),
        }
        outcome
    }

    /// Handles a refusal: the row if the disk is attached to the node; none once the order is worth another attempt.
    async fn after_refusal(
        &self,
        order: &mut Order<'_>,
        takeover: &mut Takeover,
        refusal: api::Error,
    ) -> Result<Option<Disk>> {
        let &mut Order {
            deadline,
            disk,
            node,
            ..
        } = order;
        let no_force = takeover.forced && refuses_force(&refusal);
        takeover.unsupported |= no_force;
        // An attempt by force has little time: its outcome is read.
        let cut_short = takeover.forced && !deadline.is_over();
        if let Some(verdict) = super::incompatible::verdict(&refusal)
            && !no_force
        {
            order.release();
            return Err(self
                .incompatible(deadline, disk, node, verdict, refusal)
                .await);
        }
        match refusal.kind() {
            // A full node may hold this very disk.
            Kind::Conflict | Kind::Ambiguous | Kind::Quota => {}
            _ if no_force => {}
            Kind::Deadline | Kind::Unreachable | Kind::Throttled if cut_short => {}
            Kind::NotFound if refusal.condition() == Condition::NoSuchNode => {
                return Err(Error::NoSuchNode {
                    node: node.clone(),
                    disk: disk.clone(),
                });
            }
            Kind::NotFound => return Err(Error::NoSuchDisk { disk: disk.clone() }),
            _ => return Err(order.failed(refusal)),
        }
        tracing::debug!(
            disk.id = %disk,
            node.id = %node,
            cloud.code = refusal.code(),
            cloud.request_id = refusal.request_id(),
            "attach refused, reading the disk"
        );
        let row = match self.disks.look(disk, deadline).await {
            Ok(Observation::Row(row)) => row,
            // Absence proves nothing. If there is no such disk, the next attempt says so.
            Ok(Observation::Missing { .. }) => return order.back_off(refusal).await.map(|()| None),
            Err(error) => return Err(order.not_observed(refusal, error)),
        };
        if self.is_on(&row, node) {
            // An attempt whose response was lost may have attached it a moment ago.
            self.journal.attached.note(&row, node);
            return Ok(Some(Disk::clone(&row)));
        }
        if refusal.kind() == Kind::Quota && row.status != DiskStatus::Attaching {
            order.release();
            return Err(self.full(deadline, &row, node, refusal).await);
        }
        if let Some(error) = self.elsewhere(&row, node) {
            return Err(error);
        }
        match &row.status {
            // A shared disk may be attaching to another node, and its row does not say to which.
            DiskStatus::Attaching if !row.multi_attach => {
                let attached = self.wait_attached(deadline, disk, node);
                order.hold(attached).await.map(Some)
            }
            // The instance is not ready, the disk is busy otherwise, or the row is a moment old.
            DiskStatus::Available | DiskStatus::InUse => {
                order.back_off(refusal).await.map(|()| None)
            }
            DiskStatus::Attaching
            | DiskStatus::Creating
            | DiskStatus::Detaching
            | DiskStatus::ReIniting => {
                let ready = self.wait_ready(order, takeover, &row, refusal).await;
                ready.map(|()| None)
            }
            DiskStatus::Unknown(_) => Err(order.failed(refusal)),
        }
    }

    /// Waits until the disk, which is in a transitional state, may be attached, or attached by force.
    async fn wait_ready(
        &self,
        order: &mut Order<'_>,
        takeover: &mut Takeover,
        row: &Disk,
        refusal: api::Error,
    ) -> Result<()> {
        let (start, node) = (Instant::now(), order.node);
        // The disk is not ready, but its node may be.
        order.release();
        let stuck = takeover.observe(row, node);
        let stopped = stuck && self.are_stopped(&row.attachments, order.deadline).await;
        if stopped && !takeover.forced {
            takeover.due = true;
            return Ok(());
        }
        let decide = |observation: Observation<Disk>| match observation {
            Observation::Row(now) if now.status == DiskStatus::Detaching => {
                let stopped = stopped && now.attachments == row.attachments;
                (takeover.observe(&now, node) && (stopped || takeover.is_stuck())).then_some(true)
            }
            Observation::Row(row) => {
                let ready = matches!(row.status, DiskStatus::Available | DiskStatus::InUse);
                ready.then_some(false)
            }
            Observation::Missing { .. } => Some(false),
        };
        match self.disks.until(order.disk, order.deadline, decide).await {
            Ok(due) => takeover.due = due,
            Err(error) => return Err(order.not_observed(refusal, error)),
        }
        order.pause(start, refusal).await
    }
}
