//! Whose turn it is at an instance. The cloud attaches one disk at a time to an instance, and detaches
//! one, unless the instance is tagged for more; it refuses the next one (`InvalidOperation.Conflict`),
//! and each refusal costs a call and a wait. So calls queue here, in the order of asking.
//!
//! How much an instance takes is learned when calls first queue for it (see [`super::turn`]), and from
//! refusals; it is forgotten after a while, because tags change.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::base::{Deadline, Elapsed};
use crate::model::InstanceId;

/// How long it is remembered what an instance takes.
const MEMORY: Duration = Duration::from_secs(600);

/// So many instances are remembered before the forgotten ones are swept out.
const SWEEP: usize = 1000;

/// Which way a disk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// To an instance.
    Attach,
    /// Off it.
    Detach,
}

/// How many disks an instance takes at a time, each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parallelism {
    pub(super) on: usize,
    pub(super) off: usize,
}

impl Parallelism {
    /// What every instance takes.
    pub(super) const ONE: Self = Self { on: 1, off: 1 };
}

/// The queues of all instances.
#[derive(Debug, Clone, Default)]
pub(super) struct AttachQueues(Arc<Mutex<HashMap<InstanceId, Queues>>>);

/// The queues of one instance.
#[derive(Debug, Default)]
struct Queues {
    on: Lane,
    off: Lane,
    /// What it takes, as long as that is remembered.
    width: Option<(Parallelism, Deadline)>,
    /// Until when it takes nothing on while something comes off, and the other way round.
    shared: Option<Deadline>,
}

#[derive(Debug, Default)]
struct Lane {
    running: usize,
    waiting: VecDeque<oneshot::Sender<Permit>>,
}

/// The turn of one call; dropping it lets the next one in.
#[derive(Debug)]
pub(super) struct Permit {
    queues: AttachQueues,
    node: InstanceId,
    way: Operation,
    /// Handed back by whoever gave up waiting for it.
    void: bool,
}

impl AttachQueues {
    /// The turn, when nobody has to be waited for.
    pub(super) fn free(&self, node: &InstanceId, way: Operation) -> Option<Permit> {
        let mut nodes = self.lock();
        let queues = nodes.entry(node.clone()).or_default();
        let free = queues.lane(way).waiting.is_empty() && queues.may_start(way);
        free.then(|| {
            queues.lane(way).running += 1;
            self.turn_of(node, way)
        })
    }

    /// Waits for the turn.
    pub(super) async fn turn(
        &self,
        node: &InstanceId,
        way: Operation,
        deadline: Deadline,
    ) -> Result<Permit, Elapsed> {
        let (give, take) = oneshot::channel();
        {
            let mut nodes = self.lock();
            if nodes.len() > SWEEP {
                nodes.retain(|_, queues| queues.is_of_use());
            }
            let queues = nodes.entry(node.clone()).or_default();
            queues.lane(way).waiting.push_back(give);
            self.admit(node, queues);
        }
        match deadline.bound(take).await {
            Ok(turn) => Ok(turn.expect("a queue outlives whoever waits in it")),
            Err(late) => {
                self.forget_who_left(node);
                Err(late)
            }
        }
    }

    /// Whether it is remembered how much the instance takes.
    pub(super) fn knows(&self, node: &InstanceId) -> bool {
        let nodes = self.lock();
        let width = nodes.get(node).and_then(|queues| queues.width);
        width.is_some_and(|(_, until)| !until.is_over())
    }

    /// The instance takes so much.
    pub(super) fn learn(&self, node: &InstanceId, width: Parallelism) {
        let mut nodes = self.lock();
        let queues = nodes.entry(node.clone()).or_default();
        queues.width = Some((width, Deadline::after(MEMORY)));
        self.admit(node, queues);
    }

    /// Gives whoever may start a turn. Detaching goes first: it is what a node that fails is relieved by.
    fn admit(&self, node: &InstanceId, queues: &mut Queues) {
        for way in [Operation::Detach, Operation::Attach] {
            while queues.may_start(way) {
                let Some(waiter) = queues.lane(way).waiting.pop_front() else {
                    break;
                };
                match waiter.send(self.turn_of(node, way)) {
                    Ok(()) => queues.lane(way).running += 1,
                    // Its caller has gone. The lock is held: the turn must not take it again.
                    Err(mut turn) => turn.void = true,
                }
            }
        }
    }

    fn forget_who_left(&self, node: &InstanceId) {
        let mut nodes = self.lock();
        if let Some(queues) = nodes.get_mut(node) {
            for way in [Operation::Attach, Operation::Detach] {
                queues
                    .lane(way)
                    .waiting
                    .retain(|waiter| !waiter.is_closed());
            }
            // Detaches that nobody waits for any more hold attaches back no longer.
            self.admit(node, queues);
            if !queues.is_of_use() {
                nodes.remove(node);
            }
        }
    }

    fn turn_of(&self, node: &InstanceId, way: Operation) -> Permit {
        Permit {
            queues: self.clone(),
            node: node.clone(),
            way,
            void: false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<InstanceId, Queues>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    fn lane(&mut self, way: Operation) -> &mut Lane {
        match way {
            Operation::Attach => &mut self.on,
            Operation::Detach => &mut self.off,
        }
    }

    fn may_start(&self, way: Operation) -> bool {
        let known = self.width.filter(|(_, until)| !until.is_over());
        let width = known.map_or(Parallelism::ONE, |(width, _)| width);
        let shared = self.shared.is_some_and(|until| !until.is_over());
        match way {
            Operation::Attach => {
                let relief = self.off.running + self.off.waiting.len();
                self.on.running < width.on && !(shared && relief > 0)
            }
            Operation::Detach => self.off.running < width.off && !(shared && self.on.running > 0),
        }
    }

    fn is_of_use(&self) -> bool {
        let busy = |lane: &Lane| lane.running > 0 || !lane.waiting.is_empty();
        let fresh = |until: Deadline| !until.is_over();
        busy(&self.on)
            || busy(&self.off)
            || self.width.is_some_and(|(_, until)| fresh(until))
            || self.shared.is_some_and(fresh)
    }
}

impl Permit {
    /// The cloud says that the instance is busy. True when that was for another call of ours, which is
    /// remembered, so that the next turn comes when it can be used; false when it is for something else.
    pub(super) fn is_in_the_way(&self) -> bool {
        let mut nodes = self.queues.lock();
        let Some(queues) = nodes.get_mut(&self.node) else {
            return false;
        };
        let (beside, across) = match self.way {
            Operation::Attach => (queues.on.running > 1, queues.off.running > 0),
            Operation::Detach => (queues.off.running > 1, queues.on.running > 0),
        };
        let until = Deadline::after(MEMORY);
        if beside {
            let known = queues.width.map_or(Parallelism::ONE, |(width, _)| width);
            let width = match self.way {
                Operation::Attach => Parallelism { on: 1, ..known },
                Operation::Detach => Parallelism { off: 1, ..known },
            };
            queues.width = Some((width, until));
        } else if across {
            queues.shared = Some(until);
        }
        beside || across
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.void {
            return;
        }
        let mut nodes = self.queues.lock();
        if let Some(queues) = nodes.get_mut(&self.node) {
            queues.lane(self.way).running -= 1;
            self.queues.admit(&self.node, queues);
            if !queues.is_of_use() {
                nodes.remove(&self.node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str) -> InstanceId {
        id.parse().unwrap()
    }

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(1))
    }

    #[tokio::test(start_paused = true)]
    async fn one_node_has_one_turn_each_way_and_another_node_its_own() {
        let queues = AttachQueues::default();
        let held = queues.turn(&node("i-1"), Operation::Attach, soon()).await;
        assert!(held.is_ok());
        assert!(
            queues
                .turn(&node("i-2"), Operation::Attach, soon())
                .await
                .is_ok()
        );
        assert!(
            queues
                .turn(&node("i-1"), Operation::Detach, soon())
                .await
                .is_ok()
        );
        assert!(queues.free(&node("i-1"), Operation::Attach).is_none());
        assert!(
            queues
                .turn(&node("i-1"), Operation::Attach, soon())
                .await
                .is_err()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_nobody_uses_is_gone() {
        let queues = AttachQueues::default();
        let held = queues
            .turn(&node("i-1"), Operation::Attach, soon())
            .await
            .unwrap();
        assert!(
            queues
                .turn(&node("i-1"), Operation::Attach, soon())
                .await
                .is_err()
        );
        drop(held);
        assert!(queues.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wide_node_takes_as_many_as_it_is_known_to_take_until_it_is_forgotten() {
        let (queues, n) = (AttachQueues::default(), node("i-1"));
        queues.learn(&n, Parallelism { on: 2, off: 1 });
        let held = [
            queues.free(&n, Operation::Attach),
            queues.free(&n, Operation::Attach),
        ];
        assert!(held.iter().all(Option::is_some) && queues.free(&n, Operation::Attach).is_none());
        drop(held);
        tokio::time::advance(MEMORY).await;
        assert!(!queues.knows(&n));
        let held = queues.free(&n, Operation::Attach);
        assert!(held.is_some() && queues.free(&n, Operation::Attach).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_beside_another_call_narrows_the_node_and_one_alone_tells_nothing() {
        let (queues, n) = (AttachQueues::default(), node("i-1"));
        queues.learn(&n, Parallelism { on: 5, off: 5 });
        let alone = queues.free(&n, Operation::Attach).unwrap();
        assert!(!alone.is_in_the_way());
        let beside = queues.free(&n, Operation::Attach).unwrap();
        assert!(beside.is_in_the_way());
        drop(beside);
        assert!(queues.free(&n, Operation::Attach).is_none());
        drop(alone);
        assert!(queues.free(&n, Operation::Attach).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn where_one_slot_is_shared_a_detach_that_waits_goes_before_every_attach() {
        let (queues, n) = (AttachQueues::default(), node("i-1"));
        let (on, off) = (
            queues.free(&n, Operation::Attach).unwrap(),
            queues.free(&n, Operation::Detach),
        );
        assert!(on.is_in_the_way());
        drop(off);
        let (first, second) = (queues.clone(), queues.clone());
        let order = Arc::new(Mutex::new(Vec::new()));
        let (log, other, at) = (Arc::clone(&order), Arc::clone(&order), n.clone());
        let attach = async move {
            let turn = first.turn(&n, Operation::Attach, soon()).await.unwrap();
            log.lock().unwrap().push(Operation::Attach);
            drop(turn);
        };
        let detach = async move {
            let turn = second.turn(&at, Operation::Detach, soon()).await.unwrap();
            other.lock().unwrap().push(Operation::Detach);
            drop(turn);
        };
        tokio::join!(attach, detach, async move { drop(on) });
        assert_eq!(
            *order.lock().unwrap(),
            [Operation::Detach, Operation::Attach]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_gave_up_waiting_holds_nobody_back() {
        let (queues, n) = (AttachQueues::default(), node("i-1"));
        let held = queues.free(&n, Operation::Attach).unwrap();
        assert!(queues.turn(&n, Operation::Attach, soon()).await.is_err());
        let (give, take) = oneshot::channel();
        queues
            .lock()
            .get_mut(&n)
            .unwrap()
            .on
            .waiting
            .push_back(give);
        drop(take);
        drop(held);
        assert!(queues.free(&n, Operation::Attach).is_some());
    }
}
