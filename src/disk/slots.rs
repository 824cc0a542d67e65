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
pub(super) enum Way {
    /// To an instance.
    On,
    /// Off it.
    Off,
}

/// How many disks an instance takes at a time, each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Width {
    pub(super) on: usize,
    pub(super) off: usize,
}

impl Width {
    /// What every instance takes.
    pub(super) const ONE: Self = Self { on: 1, off: 1 };
}

/// The queues of all instances.
#[derive(Debug, Clone, Default)]
pub(super) struct Slots(Arc<Mutex<HashMap<InstanceId, Queues>>>);

/// The queues of one instance.
#[derive(Debug, Default)]
struct Queues {
    on: Lane,
    off: Lane,
    /// What it takes, as long as that is remembered.
    width: Option<(Width, Deadline)>,
    /// Until when it takes nothing on while something comes off, and the other way round.
    shared: Option<Deadline>,
}

#[derive(Debug, Default)]
struct Lane {
    running: usize,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

/// The turn of one call; dropping it lets the next one in.
#[derive(Debug)]
pub(super) struct Turn {
    slots: Slots,
    node: InstanceId,
    way: Way,
    /// Handed back by whoever gave up waiting for it.
    void: bool,
}

impl Slots {
    /// The turn, when nobody has to be waited for.
    pub(super) fn free(&self, node: &InstanceId, way: Way) -> Option<Turn> {
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
        way: Way,
        deadline: Deadline,
    ) -> Result<Turn, Elapsed> {
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
    pub(super) fn learn(&self, node: &InstanceId, width: Width) {
        let mut nodes = self.lock();
        let queues = nodes.entry(node.clone()).or_default();
        queues.width = Some((width, Deadline::after(MEMORY)));
        self.admit(node, queues);
    }

    /// Gives whoever may start a turn. Detaching goes first: it is what a node that fails is relieved by.
    fn admit(&self, node: &InstanceId, queues: &mut Queues) {
        for way in [Way::Off, Way::On] {
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
            for way in [Way::On, Way::Off] {
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

    fn turn_of(&self, node: &InstanceId, way: Way) -> Turn {
        Turn {
            slots: self.clone(),
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
    fn lane(&mut self, way: Way) -> &mut Lane {
        match way {
            Way::On => &mut self.on,
            Way::Off => &mut self.off,
        }
    }

    fn may_start(&self, way: Way) -> bool {
        let known = self.width.filter(|(_, until)| !until.is_over());
        let width = known.map_or(Width::ONE, |(width, _)| width);
        let shared = self.shared.is_some_and(|until| !until.is_over());
        match way {
            Way::On => {
                let relief = self.off.running + self.off.waiting.len();
                self.on.running < width.on && !(shared && relief > 0)
            }
            Way::Off => self.off.running < width.off && !(shared && self.on.running > 0),
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

impl Turn {
    /// The cloud says that the instance is busy. True when that was for another call of ours, which is
    /// remembered, so that the next turn comes when it can be used; false when it is for something else.
    pub(super) fn is_in_the_way(&self) -> bool {
        let mut nodes = self.slots.lock();
        let Some(queues) = nodes.get_mut(&self.node) else {
            return false;
        };
        let (beside, across) = match self.way {
            Way::On => (queues.on.running > 1, queues.off.running > 0),
            Way::Off => (queues.off.running > 1, queues.on.running > 0),
        };
        let until = Deadline::after(MEMORY);
        if beside {
            let known = queues.width.map_or(Width::ONE, |(width, _)| width);
            let width = match self.way {
                Way::On => Width { on: 1, ..known },
                Way::Off => Width { off: 1, ..known },
            };
            queues.width = Some((width, until));
        } else if across {
            queues.shared = Some(until);
        }
        beside || across
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.void {
            return;
        }
        let mut nodes = self.slots.lock();
        if let Some(queues) = nodes.get_mut(&self.node) {
            queues.lane(self.way).running -= 1;
            self.slots.admit(&self.node, queues);
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
        let slots = Slots::default();
        let held = slots.turn(&node("i-1"), Way::On, soon()).await;
        assert!(held.is_ok());
        assert!(slots.turn(&node("i-2"), Way::On, soon()).await.is_ok());
        assert!(slots.turn(&node("i-1"), Way::Off, soon()).await.is_ok());
        assert!(slots.free(&node("i-1"), Way::On).is_none());
        assert!(slots.turn(&node("i-1"), Way::On, soon()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_nobody_uses_is_gone() {
        let slots = Slots::default();
        let held = slots.turn(&node("i-1"), Way::On, soon()).await.unwrap();
        assert!(slots.turn(&node("i-1"), Way::On, soon()).await.is_err());
        drop(held);
        assert!(slots.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wide_node_takes_as_many_as_it_is_known_to_take_until_it_is_forgotten() {
        let (slots, n) = (Slots::default(), node("i-1"));
        slots.learn(&n, Width { on: 2, off: 1 });
        let held = [slots.free(&n, Way::On), slots.free(&n, Way::On)];
        assert!(held.iter().all(Option::is_some) && slots.free(&n, Way::On).is_none());
        drop(held);
        tokio::time::advance(MEMORY).await;
        assert!(!slots.knows(&n));
        let held = slots.free(&n, Way::On);
        assert!(held.is_some() && slots.free(&n, Way::On).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_beside_another_call_narrows_the_node_and_one_alone_tells_nothing() {
        let (slots, n) = (Slots::default(), node("i-1"));
        slots.learn(&n, Width { on: 5, off: 5 });
        let alone = slots.free(&n, Way::On).unwrap();
        assert!(!alone.is_in_the_way());
        let beside = slots.free(&n, Way::On).unwrap();
        assert!(beside.is_in_the_way());
        drop(beside);
        assert!(slots.free(&n, Way::On).is_none());
        drop(alone);
        assert!(slots.free(&n, Way::On).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn where_one_slot_is_shared_a_detach_that_waits_goes_before_every_attach() {
        let (slots, n) = (Slots::default(), node("i-1"));
        let (on, off) = (slots.free(&n, Way::On).unwrap(), slots.free(&n, Way::Off));
        assert!(on.is_in_the_way());
        drop(off);
        let (first, second) = (slots.clone(), slots.clone());
        let order = Arc::new(Mutex::new(Vec::new()));
        let (log, other, at) = (Arc::clone(&order), Arc::clone(&order), n.clone());
        let attach = async move {
            let turn = first.turn(&n, Way::On, soon()).await.unwrap();
            log.lock().unwrap().push(Way::On);
            drop(turn);
        };
        let detach = async move {
            let turn = second.turn(&at, Way::Off, soon()).await.unwrap();
            other.lock().unwrap().push(Way::Off);
            drop(turn);
        };
        tokio::join!(attach, detach, async move { drop(on) });
        assert_eq!(*order.lock().unwrap(), [Way::Off, Way::On]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_gave_up_waiting_holds_nobody_back() {
        let (slots, n) = (Slots::default(), node("i-1"));
        let held = slots.free(&n, Way::On).unwrap();
        assert!(slots.turn(&n, Way::On, soon()).await.is_err());
        let (give, take) = oneshot::channel();
        slots.lock().get_mut(&n).unwrap().on.waiting.push_back(give);
        drop(take);
        drop(held);
        assert!(slots.free(&n, Way::On).is_some());
    }
}
