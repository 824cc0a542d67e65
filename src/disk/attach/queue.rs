//! Permits for orders to an instance. The cloud attaches one disk at a time to an instance, and detaches one, unless the
//! instance is tagged for more. It rejects the next request (`InvalidOperation.Conflict`), which costs a call and a wait.
//! So requests queue here in FIFO order.
//!
//! The number of parallel operations is read from the instance's tags (see `parallelism.rs`) and learned from rejections.

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
    /// When the parallelism is read again, if an order queues then.
    read_at: Option<Instant>,
    read_pauses: Option<Pauses>,
    /// Until when attach and detach exclude each other.
    exclusive: Option<Instant>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Number of parallel operations of the instance, at least one.
    most: usize,
    running: usize,
    /// Orders that were refused, beside others of ours, since one was accepted.
    conflicts: u32,
    /// Numbers of the orders that wait, the first to come first.
    waiting: VecDeque<u64>,
}

impl AttachQueues {
    pub(super) async fn acquire(
        &self,
        node: &InstanceId,
        operation: Operation,
        deadline: Deadline,
    ) -> Result<Permit, Elapsed> {
        let (mut permit, changed) = self.enqueue(node, operation);
        loop {
            // Subscribes before it reads, so that it misses no change.
            let changed = changed.notified();
            if permit.start() {
                return Ok(permit);
            }
            deadline.bound(changed).await?;
        }
    }

    fn enqueue(&self, node: &InstanceId, operation: Operation) -> (Permit, Arc<Notify>) {
        self.lock().retain(|_, queues| queues.is_needed());
        let (number, changed) = self.update(node, |queues| {
            queues.last += 1;
            let number = queues.last;
            queues.queue(operation).waiting.push_back(number);
            (number, Arc::clone(&queues.changed))
        });
        let permit = Permit {
            queues: self.clone(),
            node: node.clone(),
            operation,
            number,
            is_running: false,
        };
        (permit, changed)
    }

    /// When the parallelism of the instance should be read.
    pub(super) fn read_due(&self, node: &InstanceId) -> Instant {
        let due = self.update(node, |queues| queues.read_at);
        due.unwrap_or_else(Instant::now)
    }

    /// Records the number of parallel operations read from the instance.
    pub(super) fn learn(&self, node: &InstanceId, attach: usize, detach: usize) {
        self.update(node, |queues| {
            (queues.attach.most, queues.detach.most) = (attach, detach);
            queues.read_at = Some(Instant::now() + REFRESH);
            queues.read_pauses = None;
            queues.changed.notify_waiters();
        });
    }

    /// Reading the instance failed, for all that waited for the same response. What is known of it stays.
    pub(super) fn read_failed(&self, node: &InstanceId) {
        self.update(node, |queues| {
            if !is_ahead(queues.read_at) {
                let pauses = || Pauses::between(SHORTEST_PAUSE, LONGEST_PAUSE);
                let pause = queues.read_pauses.get_or_insert_with(pauses).next();
                queues.read_at = Some(Instant::now() + pause);
            }
        });
    }

    /// Changes what is known of an instance. One without information is removed.
    fn update<T>(&self, node: &InstanceId, change: impl FnOnce(&mut Node) -> T) -> T {
        let mut nodes = self.lock();
        let queues = nodes.entry(node.clone()).or_default();
        let changed = change(queues);
        if !queues.is_needed() {
            nodes.remove(node);
        }
        changed
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<InstanceId, Node>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_ahead(time: Option<Instant>) -> bool {
    time > Some(Instant::now())
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
        let is_used = !(self.attach.is_empty() && self.detach.is_empty());
        is_used || is_ahead(self.read_at.max(self.exclusive))
    }
}

/// A place in a queue, and from its start the right to have one operation under way at the
/// instance. Dropping it lets the next order start.
#[derive(Debug)]
pub(super) struct Permit {
    queues: AttachQueues,
    node: InstanceId,
    operation: Operation,
    number: u64,
    is_running: bool,
}

impl Permit {
    /// Starts the operation if the request is the first of its queue and the instance supports another operation.
    fn start(&mut self) -> bool {
        self.is_running = self.queues.update(&self.node, |queues| {
            let may_start = queues.may_start(self.operation);
            let queue = queues.queue(self.operation);
            if !may_start || queue.waiting.front() != Some(&self.number) {
                return false;
            }
            queue.waiting.pop_front();
            queue.running += 1;
            // The instance may take the next one as well.
            queues.changed.notify_waiters();
            true
        });
        self.is_running
    }

    /// Records that the cloud rejected the request because the instance is busy. True if the reason is another operation of
    /// this process, whose end issues another permit; false if it is an external one.
    pub(super) fn learn_conflict(&self) -> bool {
        self.queues.update(&self.node, |queues| {
            let (same, other) = match self.operation {
                Operation::Attach => (queues.attach.running, queues.detach.running),
                Operation::Detach => (queues.detach.running, queues.attach.running),
            };
            let until = Some(Instant::now() + REFRESH);
            if same > 1 {
                let queue = queues.queue(self.operation);
                queue.conflicts += 1;
                // A single one may be due to somebody else's operation.
                if queue.conflicts < CONFLICTS {
                    return false;
                }
                queue.most = 1;
                queues.read_at = until;
            } else if other > 0 {
                queues.exclusive = until;
            }
            same > 1 || other > 0
        })
    }

    pub(super) fn accepted(&self) {
        if let Some(queues) = self.queues.lock().get_mut(&self.node) {
            queues.queue(self.operation).conflicts = 0;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.queues.update(&self.node, |queues| {
            let queue = queues.queue(self.operation);
            if self.is_running {
                queue.running -= 1;
            } else {
                queue.waiting.retain(|number| *number != self.number);
            }
            queues.changed.notify_waiters();
        });
    }
}
