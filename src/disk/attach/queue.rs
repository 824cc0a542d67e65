//! Permits for orders to an instance. The cloud attaches one disk at a time to an instance, and detaches one, unless the
//! instance is tagged for more. It refuses the next order (`InvalidOperation.Conflict`), which costs a call and a wait.
//! So orders queue here, first come, first served.
//!
//! How many operations an instance takes at a time is read from its tags when orders first queue for it (see
//! [`super::parallelism`]), and learned from refusals.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::base::{Deadline, Elapsed};
use crate::disk::pauses::Pauses;
use crate::model::InstanceId;

#[cfg(test)]
mod tests;

/// How long the parallelism of an instance is used before it is read again. Tags change.
const REFRESH: Duration = Duration::from_secs(600);

/// Pauses between failed reads of an instance.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Instances that are kept before those without information are removed.
const SWEEP: usize = 1000;

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

impl Parallelism {
    /// What every instance takes.
    pub(super) const ONE: Self = Self {
        attach: 1,
        detach: 1,
    };
}

#[derive(Debug, Clone, Default)]
pub(super) struct AttachQueues(Arc<Mutex<HashMap<InstanceId, Node>>>);

#[derive(Debug)]
struct Node {
    attach: Queue,
    detach: Queue,
    /// The last known parallelism, and when to read it again.
    parallelism: Option<(Parallelism, Deadline)>,
    /// After failed reads: when to try again.
    read_at: Option<Instant>,
    read_pauses: Pauses,
    /// Until when attach and detach exclude each other.
    exclusive: Option<Deadline>,
}

#[derive(Debug, Default)]
struct Queue {
    running: usize,
    waiting: VecDeque<oneshot::Sender<Permit>>,
}

impl AttachQueues {
    /// A permit, if no other order has to be waited for.
    pub(super) fn try_acquire(&self, node: &InstanceId, operation: Operation) -> Option<Permit> {
        let mut nodes = self.lock();
        let queues = of(&mut nodes, node);
        let free = queues.queue(operation).waiting.is_empty() && queues.may_start(operation);
        free.then(|| {
            queues.queue(operation).running += 1;
            self.permit(node, operation)
        })
    }

    /// Queues for a permit.
    pub(super) async fn acquire(
        &self,
        node: &InstanceId,
        operation: Operation,
        deadline: Deadline,
    ) -> Result<Permit, Elapsed> {
        let mut place = self.enqueue(node, operation);
        let permit = deadline.bound(&mut place.permit).await?;
        // The sender is dropped only by those who have left.
        permit.map_err(|_| Elapsed)
    }

    fn enqueue<'a>(&'a self, node: &'a InstanceId, operation: Operation) -> Place<'a> {
        let (sender, permit) = oneshot::channel();
        let mut nodes = self.lock();
        let queues = of(&mut nodes, node);
        queues.queue(operation).waiting.push_back(sender);
        self.admit(node, queues);
        drop(nodes);
        Place {
            queues: self,
            node,
            permit,
        }
    }

    /// When the parallelism of the instance should be read; none while it is known.
    pub(super) fn read_due(&self, node: &InstanceId) -> Option<Instant> {
        let nodes = self.lock();
        let Some(queues) = nodes.get(node) else {
            return Some(Instant::now());
        };
        let known = queues
            .parallelism
            .is_some_and(|(_, until)| !until.is_over());
        (!known).then(|| queues.read_at.unwrap_or_else(Instant::now))
    }

    /// The instance was read.
    pub(super) fn learn(&self, node: &InstanceId, parallelism: Parallelism) {
        let mut nodes = self.lock();
        let queues = nodes.entry(node.clone()).or_default();
        queues.parallelism = Some((parallelism, Deadline::after(REFRESH)));
        queues.read_at = None;
        queues.read_pauses = read_pauses();
        self.admit(node, queues);
    }

    /// Reading the instance failed, for all that waited for the same response. What is known of it stays.
    pub(super) fn read_failed(&self, node: &InstanceId) {
        let mut nodes = self.lock();
        let queues = nodes.entry(node.clone()).or_default();
        let now = Instant::now();
        if queues.read_at.is_none_or(|at| at <= now) {
            queues.read_at = Some(now + queues.read_pauses.next());
        }
    }

    /// Admits orders. Detach goes first: it relieves a node that fails.
    fn admit(&self, node: &InstanceId, queues: &mut Node) {
        for operation in [Operation::Detach, Operation::Attach] {
            while queues.may_start(operation) {
                let Some(waiter) = queues.queue(operation).waiting.pop_front() else {
                    break;
                };
                match waiter.send(self.permit(node, operation)) {
                    Ok(()) => queues.queue(operation).running += 1,
                    // The waiter has left. The lock is held: dropping the permit must not take it again.
                    Err(mut permit) => permit.void = true,
                }
            }
        }
    }

    fn permit(&self, node: &InstanceId, operation: Operation) -> Permit {
        Permit {
            queues: self.clone(),
            node: node.clone(),
            operation,
            void: false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<InstanceId, Node>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Node {
    fn default() -> Self {
        Self {
            attach: Queue::default(),
            detach: Queue::default(),
            parallelism: None,
            read_at: None,
            read_pauses: read_pauses(),
            exclusive: None,
        }
    }
}

/// The queues of an instance. Where the map would grow, instances without information are removed first.
fn of<'a>(nodes: &'a mut HashMap<InstanceId, Node>, node: &InstanceId) -> &'a mut Node {
    if nodes.len() > SWEEP && nodes.len() == nodes.capacity() {
        nodes.retain(|_, queues| queues.is_needed());
    }
    nodes.entry(node.clone()).or_default()
}

fn read_pauses() -> Pauses {
    Pauses::between(SHORTEST_PAUSE, LONGEST_PAUSE)
}

impl Node {
    fn queue(&mut self, operation: Operation) -> &mut Queue {
        match operation {
            Operation::Attach => &mut self.attach,
            Operation::Detach => &mut self.detach,
        }
    }

    fn may_start(&self, operation: Operation) -> bool {
        let most = self
            .parallelism
            .map_or(Parallelism::ONE, |(known, _)| known);
        let exclusive = self.exclusive.is_some_and(|until| !until.is_over());
        match operation {
            Operation::Attach => {
                let detaches = self.detach.running + self.detach.waiting.len();
                self.attach.running < most.attach && !(exclusive && detaches > 0)
            }
            Operation::Detach => {
                self.detach.running < most.detach && !(exclusive && self.attach.running > 0)
            }
        }
    }

    fn is_needed(&self) -> bool {
        let busy = |queue: &Queue| queue.running > 0 || !queue.waiting.is_empty();
        busy(&self.attach)
            || busy(&self.detach)
            || self.parallelism.is_some_and(|(_, until)| !until.is_over())
            || self.exclusive.is_some_and(|until| !until.is_over())
            || self.read_at.is_some_and(|at| at > Instant::now())
    }
}

/// The right to have one operation under way at an instance. Dropping it admits the next order.
#[derive(Debug)]
pub(super) struct Permit {
    queues: AttachQueues,
    node: InstanceId,
    operation: Operation,
    /// Returned by a waiter that has left: there is nothing to release.
    void: bool,
}

/// A place in a queue. Dropping it leaves the queue.
struct Place<'a> {
    queues: &'a AttachQueues,
    node: &'a InstanceId,
    permit: oneshot::Receiver<Permit>,
}

impl Permit {
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
        let until = Deadline::after(REFRESH);
        if same {
            let known = queues
                .parallelism
                .map_or(Parallelism::ONE, |(known, _)| known);
            let less = match self.operation {
                Operation::Attach => Parallelism { attach: 1, ..known },
                Operation::Detach => Parallelism { detach: 1, ..known },
            };
            queues.parallelism = Some((less, until));
        } else if other {
            queues.exclusive = Some(until);
        }
        same || other
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.void {
            return;
        }
        let mut nodes = self.queues.lock();
        if let Some(queues) = nodes.get_mut(&self.node) {
            queues.queue(self.operation).running -= 1;
            self.queues.admit(&self.node, queues);
            if !queues.is_needed() {
                nodes.remove(&self.node);
            }
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.permit.close();
        let mut nodes = self.queues.lock();
        let Some(queues) = nodes.get_mut(self.node) else {
            return;
        };
        for operation in [Operation::Attach, Operation::Detach] {
            let waiting = &mut queues.queue(operation).waiting;
            waiting.retain(|waiter| !waiter.is_closed());
        }
        // Attaches need not wait any longer for a detach that has left.
        self.queues.admit(self.node, queues);
        if !queues.is_needed() {
            nodes.remove(self.node);
        }
    }
}
