//! Permits for orders to an instance. The cloud attaches one disk at a time to an instance, and detaches one, unless the
//! instance is tagged for more. It refuses the next order (`InvalidOperation.Conflict`), which costs a call and a wait.
//! So orders queue here, first come, first served.
//!
//! How many operations an instance takes at a time is read from its tags when orders first queue for it (see
//! [`super::parallelism`]), and learned from refusals.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::base::{Deadline, Elapsed};
use crate::disk::pauses::Pauses;
use crate::model::InstanceId;

#[cfg(test)]
mod tests;

/// How long the parallelism of an instance is used before it is read again. Tags change.
const REFRESH: Duration = Duration::from_secs(600);

/// Refused orders in a row, beside others of ours, after which an instance counts as taking one at a time.
const CONFLICTS: u32 = 2;

/// Pauses between failed reads of an instance.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    Attach,
    Detach,
}

/// How many operations an instance takes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parallelism {
    pub(super) attach: usize,
    pub(super) detach: usize,
}

#[derive(Debug, Clone, Default)]
pub(super) struct AttachQueues(Arc<Mutex<HashMap<InstanceId, Node>>>);

#[derive(Debug, Default)]
struct Node {
    attach: Queue,
    detach: Queue,
    /// The number of the last order.
    last: u64,
    /// Orders may be able to start.
    changed: Arc<Notify>,
    /// Until when the parallelism is not read again.
    known: Option<Deadline>,
    /// After failed reads: when to try again.
    read_at: Option<Instant>,
    read_pauses: Option<Pauses>,
    /// Until when attach and detach exclude each other.
    exclusive: Option<Deadline>,
}

#[derive(Debug, Default)]
struct Queue {
    /// How many operations the instance takes; every instance takes one.
    most: usize,
    running: usize,
    /// Orders that were refused, beside others of ours, since one was accepted.
    conflicts: u32,
    /// Numbers of the orders that wait, the first to come first.
    waiting: VecDeque<u64>,
}

impl AttachQueues {
    /// Queues for a permit.
    pub(super) async fn acquire(
        &self,
        node: &InstanceId,
        operation: Operation,
        deadline: Deadline,
    ) -> Result<Permit, Elapsed> {
        let (mut permit, changed) = self.enqueue(node, operation);
        loop {
            // Listens before it looks, so that it misses no change.
            let changed = changed.notified();
            if permit.start() {
                return Ok(permit);
            }
            deadline.bound(changed).await?;
        }
    }

    fn enqueue(&self, node: &InstanceId, operation: Operation) -> (Permit, Arc<Notify>) {
        let mut nodes = self.lock();
        let queues = nodes.entry(node.clone()).or_default();
        queues.last += 1;
        let number = queues.last;
        queues.queue(operation).waiting.push_back(number);
        let permit = Permit {
            queues: self.clone(),
            node: node.clone(),
            operation,
            number,
            is_running: false,
        };
        (permit, Arc::clone(&queues.changed))
    }

    /// When the parallelism of the instance should be read; none while it is known.
    pub(super) fn read_due(&self, node: &InstanceId) -> Option<Instant> {
        let nodes = self.lock();
        let Some(queues) = nodes.get(node) else {
            return Some(Instant::now());
        };
        (!is_ahead(queues.known)).then(|| queues.read_at.unwrap_or_else(Instant::now))
    }

    /// The instance was read.
    pub(super) fn learn(&self, node: &InstanceId, parallelism: Parallelism) {
        self.update(node, |queues| {
            queues.attach.most = parallelism.attach;
            queues.detach.most = parallelism.detach;
            queues.known = Some(Deadline::after(REFRESH));
            (queues.read_at, queues.read_pauses) = (None, None);
            queues.changed.notify_waiters();
        });
    }

    /// Reading the instance failed, for all that waited for the same response. What is known of it stays.
    pub(super) fn read_failed(&self, node: &InstanceId) {
        self.update(node, |queues| {
            let now = Instant::now();
            if queues.read_at.is_none_or(|at| at <= now) {
                let pauses = || Pauses::between(SHORTEST_PAUSE, LONGEST_PAUSE);
                let pause = queues.read_pauses.get_or_insert_with(pauses).next();
                queues.read_at = Some(now + pause);
            }
        });
    }

    /// Changes what is known of an instance. Instances without information are removed.
    fn update(&self, node: &InstanceId, change: impl FnOnce(&mut Node)) {
        let mut nodes = self.lock();
        nodes.retain(|_, queues| queues.is_needed());
        change(nodes.entry(node.clone()).or_default());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<InstanceId, Node>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_ahead(time: Option<Deadline>) -> bool {
    time.is_some_and(|time| !time.is_over())
}

impl Queue {
    fn is_full(&self) -> bool {
        self.running >= self.most.max(1)
    }

    fn is_empty(&self) -> bool {
        self.running == 0 && self.waiting.is_empty()
    }
}

impl Node {
    fn queue(&mut self, operation: Operation) -> &mut Queue {
        match operation {
            Operation::Attach => &mut self.attach,
            Operation::Detach => &mut self.detach,
        }
    }

    fn may_start(&self, operation: Operation) -> bool {
        let exclusive = is_ahead(self.exclusive);
        match operation {
            // Detach goes first: it relieves a node that fails.
            Operation::Attach => !self.attach.is_full() && (!exclusive || self.detach.is_empty()),
            Operation::Detach => !self.detach.is_full() && (!exclusive || self.attach.running == 0),
        }
    }

    fn is_needed(&self) -> bool {
        !(self.attach.is_empty() && self.detach.is_empty())
            || is_ahead(self.known)
            || is_ahead(self.exclusive)
            || self.read_at.is_some_and(|at| at > Instant::now())
    }
}

/// A place in a queue, and from its start the right to have one operation under way at the instance. Dropping it lets the
/// next order start.
#[derive(Debug)]
pub(super) struct Permit {
    queues: AttachQueues,
    node: InstanceId,
    operation: Operation,
    number: u64,
    is_running: bool,
}

impl Permit {
    /// Starts the operation, if the order is the first of its queue and the instance takes another operation.
    fn start(&mut self) -> bool {
        let mut nodes = self.queues.lock();
        let Some(queues) = nodes.get_mut(&self.node) else {
            return false;
        };
        let may_start = queues.may_start(self.operation);
        let queue = queues.queue(self.operation);
        if !may_start || queue.waiting.front() != Some(&self.number) {
            return false;
        }
        queue.waiting.pop_front();
        queue.running += 1;
        self.is_running = true;
        // The instance may take the next one as well.
        queues.changed.notify_waiters();
        true
    }

    /// Takes in that the cloud has refused the order because the instance is busy. True if the reason is another
    /// operation of ours, after which there will be another permit; false if it is somebody else's.
    pub(super) fn learn_conflict(&self) -> bool {
        let mut nodes = self.queues.lock();
        let Some(queues) = nodes.get_mut(&self.node) else {
            return false;
        };
        let (same, other) = match self.operation {
            Operation::Attach => (queues.attach.running > 1, queues.detach.running > 0),
            Operation::Detach => (queues.detach.running > 1, queues.attach.running > 0),
        };
        let until = Some(Deadline::after(REFRESH));
        if same {
            let queue = queues.queue(self.operation);
            queue.conflicts += 1;
            // A single one may be due to somebody else's operation.
            if queue.conflicts < CONFLICTS {
                return false;
            }
            queue.most = 1;
            queues.known = until;
        } else if other {
            queues.exclusive = until;
        }
        same || other
    }

    pub(super) fn accepted(&self) {
        if let Some(queues) = self.queues.lock().get_mut(&self.node) {
            queues.queue(self.operation).conflicts = 0;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut nodes = self.queues.lock();
        let Some(queues) = nodes.get_mut(&self.node) else {
            return;
        };
        let queue = queues.queue(self.operation);
        if self.is_running {
            queue.running -= 1;
        } else {
            queue.waiting.retain(|number| *number != self.number);
        }
        queues.changed.notify_waiters();
        if !queues.is_needed() {
            nodes.remove(&self.node);
        }
    }
}
