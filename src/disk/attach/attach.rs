//! Attaching: order first, read only after a refusal, return when the disk is in use on the node.

use std::time::Duration;

use scopeguard::ScopeGuard;
use tokio::time::Instant;

use super::Attacher;
use super::call::Call;
use super::order::Order;
use super::queue::Operation;
use super::takeover::{Takeover, refuses_force};
use crate::base::Deadline;
use crate::cloud::view::{self, Observation};
use crate::cloud::{self, AttachDisk, Condition, Kind};
use crate::disk::Result;
use crate::disk::error::{Error, wait};
use crate::disk::stale_read::{READ_LAG, StaleReadGuard, UNSEEN};
use crate::model::{Disk, DiskId, DiskStatus, Failure, InstanceId};

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
        let (row, _) = self.call(deadline, disk, node).attach().await?;
        Ok(row)
    }
}

impl Call<'_> {
    /// As [`Attacher::attach`], and says whether this call has certainly attached it.
    pub(super) async fn attach(self) -> Result<(Disk, bool)> {
        let mut order = Order::new(self, Operation::Attach);
        let mut takeover = Takeover::default();
        loop {
            order.admit().await?;
            let soon = Self {
                deadline: self.deadline.at_most(LONGEST_FORCED),
                ..self
            };
            takeover.forced = soon.may_force(&mut takeover).await;
            let call = if takeover.forced { soon } else { self };
            let outcome = call.order_attach(takeover.forced, order.is_ephemeral).await;
            let Err(refusal) = outcome else {
                order.accepted();
                return Ok((order.hold(self.wait_attached()).await?, true));
            };
            if order.may_repeat(&refusal).await {
                continue;
            }
            let found = self.after_refusal(&mut order, &mut takeover, refusal);
            if let Some(row) = found.await? {
                return Ok((row, false));
            }
        }
    }

    /// Orders the attachment. The journal has it from before the order, so that it is known also if this call is
    /// cancelled, until it is certain that nothing was done.
    async fn order_attach(self, force: bool, is_ephemeral: bool) -> cloud::Result<()> {
        let journal = &self.attacher.journal;
        let (disk, instance) = self.ids();
        journal.free.take(&disk);
        let is_known = journal.attached.is_recent_or_pending(&disk, &instance);
        if !is_known {
            journal.attached.record_started(&disk, &instance);
        }
        let request = AttachDisk {
            disk,
            instance,
            force,
            delete_with_instance: is_ephemeral,
        };
        let lost = scopeguard::guard((), |()| {
            journal.attached.record_unresolved(self.disk, self.node);
        });
        let outcome = self.attacher.ecs.attach_disk(self.deadline, &request).await;
        match &outcome {
            Ok(()) => {
                journal.attached.record_started(self.disk, self.node);
                journal.attached.record_resolved(self.disk, self.node);
            }
            Err(error) if error.may_have_taken_effect() => return outcome,
            Err(_) if is_known => {}
            Err(_) => journal.attached.forget(self.disk, self.node),
        }
        ScopeGuard::into_inner(lost);
        outcome
    }

    /// Handles a refusal: the row if the disk is attached to the node; none once the order is worth another attempt.
    async fn after_refusal(
        self,
        order: &mut Order<'_>,
        takeover: &mut Takeover,
        refusal: cloud::Error,
    ) -> Result<Option<Disk>> {
        let no_force = takeover.forced && refuses_force(&refusal);
        takeover.unsupported |= no_force;
        // An attempt by force has little time: its outcome is read.
        let cut_short = takeover.forced && !self.deadline.has_passed();
        let (disk, node) = self.ids();
        match refusal.kind() {
            // A full node may hold this very disk.
            Kind::Conflict | Kind::Ambiguous | Kind::Quota => {}
            _ if no_force => {}
            Kind::Deadline | Kind::Unreachable | Kind::Throttled if cut_short => {}
            Kind::NotFound if refusal.condition() == Condition::NoSuchNode => {
                let why = ", which does not exist in this region";
                return Err(self.unfit(Failure::NoSuchNode, why, Some(refusal)));
            }
            Kind::NotFound => return Err(Error::NoSuchDisk { disk }),
            _ => {
                order.release();
                let explained = self.incompatible(refusal).await;
                return Err(explained.unwrap_or_else(|refusal| order.failed(refusal)));
            }
        }
        tracing::debug!(
            disk.id = %disk,
            node.id = %node,
            cloud.code = refusal.code(),
            cloud.request_id = refusal.request_id(),
            "attach refused, reading the disk"
        );
        let row = match self.look().await {
            Ok(Observation::Row(row)) => row,
            // A missing row proves nothing. If the disk does not exist, the next attempt reports it.
            Ok(Observation::Missing { .. }) => return order.back_off(refusal).await.map(|()| None),
            Err(error) => return Err(order.not_observed(refusal, error)),
        };
        let journal = &self.attacher.journal;
        let is_ours = journal.attached.is_recent_or_pending(&disk, &node)
            && !journal.attached.may_take_effect(&disk, &node);
        let is_unsure = journal.is_new_leader() && !is_ours;
        if row.is_in_use_on(&node) && (is_unsure || !self.is_on(&row)) {
            // The row may be of before the disk was detached.
            return order.back_off(refusal).await.map(|()| None);
        }
        if self.is_on(&row) {
            // An attempt whose response was lost may have attached it a moment ago.
            journal.note_attached(&row, &node);
            return Ok(Some(Disk::clone(&row)));
        }
        if refusal.kind() == Kind::Quota && row.status != DiskStatus::Attaching {
            order.release();
            return Err(self.attach_limit_error(&row, refusal).await);
        }
        if let Some(error) = self.elsewhere(&row) {
            return Err(error);
        }
        match &row.status {
            // A shared disk may be attaching to another node, and its row does not say to which.
            DiskStatus::Attaching if !row.multi_attach => {
                return order.hold(self.wait_attached()).await.map(Some);
            }
            // The instance is not ready, the disk is busy otherwise, or the row is a moment old.
            DiskStatus::Available | DiskStatus::InUse => order.back_off(refusal).await?,
            DiskStatus::Attaching
            | DiskStatus::Creating
            | DiskStatus::Detaching
            | DiskStatus::ReIniting => self.wait_ready(order, takeover, &row, refusal).await?,
            DiskStatus::Unknown(_) => return Err(order.failed(refusal)),
        }
        Ok(None)
    }

    /// Waits until the disk, which is in a transitional state, may be attached, or attached by force.
    async fn wait_ready(
        self,
        order: &mut Order<'_>,
        takeover: &mut Takeover,
        row: &Disk,
        refusal: cloud::Error,
    ) -> Result<()> {
        let start = Instant::now();
        // The disk is not ready, but its node may be.
        order.release();
        let stuck = takeover.observe(row, self.node);
        let stopped = stuck && self.are_stopped(&row.attachments).await;
        if stopped && !takeover.forced {
            takeover.due = true;
            return Ok(());
        }
        let decide = |observation: Observation<Disk>| {
            let Some(now) = observation.row() else {
                return Some(false);
            };
            if now.status == DiskStatus::Detaching {
                let stopped = stopped && now.attachments == row.attachments;
                let due = takeover.observe(&now, self.node) && (stopped || takeover.is_stuck());
                return due.then_some(true);
            }
            matches!(now.status, DiskStatus::Available | DiskStatus::InUse).then_some(false)
        };
        let waited = self
            .attacher
            .disks
            .wait_until(self.disk, self.deadline, decide);
        match waited.await {
            Ok(due) => takeover.due = due,
            Err(error) => return Err(order.not_observed(refusal, error)),
        }
        order.pause(start, refusal).await
    }
    /// Waits until an attachment that the cloud has accepted is complete, or has certainly failed.
    ///
    /// A row is at most [`READ_LAG`] old. So one that shows the disk free, from a read that began that long after the attachment
    /// was accepted, is from after it: if the disk has been observed attaching before, it has fallen back. If not, rows may
    /// be older than they should be, and more of them must agree.
    async fn wait_attached(self) -> Result<Disk> {
        let (accepted, mut free) = (Instant::now(), StaleReadGuard::default());
        // The end of the read before this one, which therefore began later.
        let mut last_read: Option<Instant> = None;
        let mut attaching = false;
        let decide = |observation: Observation<Disk>| {
            // A disk that is being attached cannot be deleted: its absence means that it is not visible.
            let row = observation.row()?;
            if self.is_on(&row) {
                self.attacher.journal.note_attached(&row, self.node);
                return Some(Ok(Disk::clone(&row)));
            }
            if let Some(error) = self.elsewhere(&row) {
                return Some(Err(error));
            }
            let begun = last_read.replace(Instant::now());
            attaching |= row.status == DiskStatus::Attaching;
            if !row.is_free() {
                free.ends();
                return None;
            }
            let after = begun.is_some_and(|begun| begun.duration_since(accepted) >= READ_LAG);
            let is_proven = free.holds(UNSEEN) || attaching && after;
            let why = ": the cloud gave up, and the disk is Available again";
            is_proven.then(|| Err(self.unfit(Failure::AttachFailed, why, None)))
        };
        let (disks, operation) = (&self.attacher.disks, view::Operation::Attach);
        let waited = disks.wait_until_done(self.disk, self.deadline, operation, decide);
        waited.await.map_err(wait(self.step(Operation::Attach)))?
    }
}
