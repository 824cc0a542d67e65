//! A queue of attach and detach requests per instance. The cloud attaches one disk at a time to an instance, and
//! detaches one, unless the instance is tagged for more, and rejects further requests (`InvalidOperation.Conflict`). To
//! avoid the cost of rejections, requests wait here in FIFO order.
//!
//! The number of parallel operations is read from the instance's tags (see `attachments.rs`) and learned from
//! rejections.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::target::AttachOperation;
use crate::base::{Deadline, Elapsed, InPhase, Phase, lock};
use crate::disk::backoff::Backoff;
use crate::model::InstanceId;

#[cfg(test)]
mod tests;

/// How long the parallelism of an instance is cached. Tags change.
const REFRESH: Duration = Duration::from_secs(600);

/// Consecutive rejections, in parallel with other operations of this process, that reduce the parallelism to one.
const CONFLICTS: u32 = 2;

/// Backoff between failed reads of an instance.
const MIN_READ_BACKOFF: Duration = Duration::from_secs(1);
const MAX_READ_BACKOFF: Duration = Duration::from_secs(300);

/// The attach or detach requests of all instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueReport {
    pub operation: &'static str,
    pub running: usize,
    pub waiting: usize,
    /// Requests that wait for the instance with the most of them.
    pub longest: usize,
}

#[derive(Debug, Clone, Default)]
pub(super) struct AttachQueues(Arc<Mutex<HashMap<InstanceId, InstanceQueues>>>);

#[derive(Debug, Default)]
struct InstanceQueues {
    attach: Queue,
    detach: Queue,
    /// The number of the last request.
    last: u64,
    /// Notified when requests may be able to start.
    changed: Arc<Notify>,
    /// When the parallelism is read again, if a request is queued then.
    read_at: Option<Instant>,
    read_backoff: Option<Backoff>,
    /// Until when attach and detach exclude each other.
    exclusive: Option<Instant>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Number of parallel operations that the instance supports; zero counts as one.
    parallelism: usize,
    running: usize,
    /// Rejections in parallel with other operations of this process since the last acceptance.
    conflicts: u32,
    /// Numbers of the queued requests in FIFO order.
    waiting: VecDeque<u64>,
}

impl AttachQueues {
    pub(super) async fn acquire(
        &self,
        node: &InstanceId,
        operation: AttachOperation,
        deadline: Deadline,
    ) -> Result<Permit, Elapsed> {
        let (mut permit, changed) = self.enqueue(node, operation);
        let started = async {
            loop {
                // Subscribes before the check, so that no change is missed.
                let changed = changed.notified();
                if permit.start() {
                    return Ok(permit);
                }
                deadline.bound(changed).await?;
            }
        };
        started.in_phase(Phase::AttachQueue).await
    }

    fn enqueue(&self, node: &InstanceId, operation: AttachOperation) -> (Permit, Arc<Notify>) {
        lock(&self.0).retain(|_, queues| queues.is_needed());
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

    /// The requests of all instances, with each operation.
    pub(super) fn report(&self) -> Vec<QueueReport> {
        let nodes = lock(&self.0);
        let report = |name, queue: fn(&InstanceQueues) -> &Queue| QueueReport {
            operation: name,
            running: nodes.values().map(|node| queue(node).running).sum(),
            waiting: nodes.values().map(|node| queue(node).waiting.len()).sum(),
            longest: nodes.values().map(|node| queue(node).waiting.len()).max().unwrap_or(0),
        };
        vec![
            report("attach", |node| &node.attach),
            report("detach", |node| &node.detach),
        ]
    }

    /// When the parallelism of the instance should be read.
    pub(super) fn next_read(&self, node: &InstanceId) -> Instant {
        let due = self.update(node, |queues| queues.read_at);
        due.unwrap_or_else(Instant::now)
    }

    /// Records the number of parallel operations read from the instance.
    pub(super) fn set_parallelism(&self, node: &InstanceId, attach: usize, detach: usize) {
        self.update(node, |queues| {
            (queues.attach.parallelism, queues.detach.parallelism) = (attach, detach);
            queues.read_at = Some(Instant::now() + REFRESH);
            queues.read_backoff = None;
            queues.changed.notify_waiters();
        });
    }

    /// Schedules the next read after a failed one, once for all waiters of the same response. The parallelism is kept.
    pub(super) fn record_read_failure(&self, node: &InstanceId) {
        self.update(node, |queues| {
            if !is_ahead(queues.read_at) {
                let backoff = || Backoff::new(MIN_READ_BACKOFF, MAX_READ_BACKOFF);
                let pause = queues.read_backoff.get_or_insert_with(backoff).next_delay();
                queues.read_at = Some(Instant::now() + pause);
            }
        });
    }

    /// Updates the queues of an instance, and removes them once they are empty.
    fn update<T>(&self, node: &InstanceId, change: impl FnOnce(&mut InstanceQueues) -> T) -> T {
        let mut nodes = lock(&self.0);
        let queues = nodes.entry(node.clone()).or_default();
        let changed = change(queues);
        if !queues.is_needed() {
            nodes.remove(node);
        }
        changed
    }
}

fn is_ahead(time: Option<Instant>) -> bool {
    time > Some(Instant::now())
}

impl Queue {
    fn is_full(&self) -> bool {
        self.running >= self.parallelism.max(1)
    }

    fn is_empty(&self) -> bool {
        self.running == 0 && self.waiting.is_empty()
    }
}

impl InstanceQueues {
    fn queue(&mut self, operation: AttachOperation) -> &mut Queue {
        match operation {
            AttachOperation::Attach => &mut self.attach,
            AttachOperation::Detach => &mut self.detach,
        }
    }

    fn may_start(&self, operation: AttachOperation) -> bool {
        let exclusive = is_ahead(self.exclusive);
        match operation {
            // Detach has priority: it is needed to recover from a failed node.
            AttachOperation::Attach => !self.attach.is_full() && (!exclusive || self.detach.is_empty()),
            AttachOperation::Detach => !self.detach.is_full() && (!exclusive || self.attach.running == 0),
        }
    }

    fn is_needed(&self) -> bool {
        let is_used = !(self.attach.is_empty() && self.detach.is_empty());
        is_used || is_ahead(self.read_at.max(self.exclusive))
    }
}

/// A position in the queue, and once started, the permit for one operation. Dropping it starts the next request.
#[derive(Debug)]
pub(super) struct Permit {
    queues: AttachQueues,
    node: InstanceId,
    operation: AttachOperation,
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
            // The instance may support the next operation as well.
            queues.changed.notify_waiters();
            true
        });
        self.is_running
    }

    /// Records that the cloud rejected the request because the instance is busy. True if another operation of this
    /// process is the reason, so that its end allows a retry; false for an external operation.
    pub(super) fn record_conflict(&self) -> bool {
        self.queues.update(&self.node, |queues| {
            let (same, other) = match self.operation {
                AttachOperation::Attach => (queues.attach.running, queues.detach.running),
                AttachOperation::Detach => (queues.detach.running, queues.attach.running),
            };
            let until = Some(Instant::now() + REFRESH);
            if same > 1 {
                let queue = queues.queue(self.operation);
                queue.conflicts += 1;
                // A single rejection may be due to an external operation.
                if queue.conflicts < CONFLICTS {
                    return false;
                }
                queue.parallelism = 1;
                queues.read_at = until;
            } else if other > 0 {
                queues.exclusive = until;
            }
            same > 1 || other > 0
        })
    }

    pub(super) fn record_accepted(&self) {
        self.queues
            .update(&self.node, |queues| queues.queue(self.operation).conflicts = 0);
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
