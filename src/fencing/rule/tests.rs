use proptest::prelude::*;
use tokio::time::Instant;

use super::*;

/// The maximum age of the states in a response.
const LAG: u64 = 3;
/// The time from the start of an instance to the first write of a pod: the kernel, kubelet and the mount.
const BOOT: u64 = 10;
const GRACE: u64 = 5;
const NODES: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Power {
    Is(InstanceStatus),
    Released,
}

#[derive(Debug, Clone)]
enum Step {
    Power(usize, Power),
    /// kubelet or the node controller changes the condition, whatever the instance does.
    Ready(usize, bool),
    /// A read with the age of its states, which a node it lacks by error, and the access key.
    Read {
        age: u64,
        took: u64,
        key: u64,
    },
    /// The response is empty, because the access key has no permission.
    Blind,
    FailedRead,
    Replaced(usize),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    use InstanceStatus::{Pending, Running, Starting, Stopped, Stopping};
    let states = [Pending, Running, Starting, Stopping, Stopped].map(Power::Is);
    let power = prop_oneof![3 => proptest::sample::select(states.to_vec()), 2 => Just(Power::Is(Stopped)), 1 => Just(Power::Released)];
    let step = prop_oneof![
        4 => (1..NODES, power).prop_map(|(node, power)| Step::Power(node, power)),
        4 => (0..NODES, any::<bool>()).prop_map(|(node, ready)| Step::Ready(node, ready)),
        16 => (0..=LAG, 0..MAX_READ.as_secs(), proptest::bool::weighted(0.05))
            .prop_map(|(age, took, other)| Step::Read { age, took, key: u64::from(other) }),
        1 => Just(Step::Blind),
        1 => Just(Step::FailedRead),
        1 => (0..NODES).prop_map(Step::Replaced),
    ];
    proptest::collection::vec((0_u64..30, step), 0..60)
}

/// The nodes, and the whole history of their instances.
struct World {
    start: Instant,
    now: u64,
    power: Vec<Vec<(u64, Power)>>,
    members: Vec<Member>,
}

impl World {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            now: 0,
            power: vec![vec![(0, Power::Is(InstanceStatus::Running))]; NODES],
            members: (0..NODES).map(|number| member(number, number == 0)).collect(),
        }
    }

    fn at(&self, second: u64) -> Instant {
        self.start + Duration::from_secs(second)
    }

    fn power(&self, node: usize, second: u64) -> &Power {
        let mut history = self.power[node].iter().rev();
        &history.find(|(since, _)| *since <= second).unwrap().1
    }

    /// Whether the instance can write at a second.
    fn may_write(&self, node: usize, second: u64) -> bool {
        use InstanceStatus::{Pending, Running, Starting, Stopping};
        match self.power(node, second) {
            Power::Is(Running | Stopping | Pending | Starting) => !self.is_booting(node, second),
            Power::Is(_) | Power::Released => false,
        }
    }

    /// Whether it was off less than the time of a boot ago.
    fn is_booting(&self, node: usize, second: u64) -> bool {
        let is_off = |power: &Power| matches!(power, Power::Is(InstanceStatus::Stopped) | Power::Released);
        (second.saturating_sub(BOOT - 1)..=second).any(|second| is_off(self.power(node, second)))
    }

    fn read(&self, age: u64, took: u64, key: u64) -> InstanceStates {
        let began = self.now;
        let states = self.members.iter().enumerate().map(|(node, member)| {
            let state = match self.power(node, began.saturating_sub(age)) {
                Power::Is(status) => Some(status.clone()),
                Power::Released => None,
            };
            (member.instance.clone(), state)
        });
        let states = states.collect();
        let (began, ended) = (self.at(began), self.at(began + took));
        InstanceStates {
            began,
            ended,
            key,
            states,
        }
    }
}

fn member(number: usize, is_ready: bool) -> Member {
    Member {
        has_owner: true,
        has_limit: false,
        is_tainted: false,
        node: format!("n{number}"),
        uid: format!("u{number}"),
        instance: format!("i-{number}").parse().unwrap(),
        is_ready,
        out_of_service: None,
    }
}

fn rule(max_nodes_percent: u8) -> Rule {
    Rule::new(FencingConfig {
        grace_period: Duration::from_secs(GRACE),
        max_nodes_percent,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The taint may be set until the read becomes invalid. At each of these seconds, the instance must be off, or have
    /// been off so recently that it has not booted.
    #[test]
    fn no_order_of_events_fences_a_node_whose_instance_may_write(steps in steps()) {
        let (mut world, mut rule) = (World::new(), rule(50));
        for (pause, step) in &steps {
            world.now += pause;
            match step.clone() {
                Step::Power(node, power) => {
                    let now = world.now;
                    // An ID is never used again.
                    if *world.power(node, now) != Power::Released {
                        world.power[node].push((now, power));
                    }
                    continue;
                }
                Step::Ready(node, is_ready) => world.members[node].is_ready = is_ready,
                Step::Replaced(node) => world.members[node].uid.push('x'),
                Step::FailedRead => rule.reset(),
                Step::Blind => {
                    let mut read = world.read(0, 0, 0);
                    read.states.values_mut().for_each(|state| *state = None);
                    prop_assert!(!rule.record(&read, &world.members));
                }
                Step::Read { age, took, key } => {
                    let read = world.read(age, took, key);
                    if !rule.record(&read, &world.members) {
                        continue;
                    }
                    let began = world.now;
                    world.now += took;
                    let due: Vec<_> = rule.due(&world.members).0.iter().map(|(member, _)| member.node.clone()).collect();
                    prop_assert!(due.len() <= NODES / 2);
                    for name in due {
                        let node = world.members.iter().position(|member| member.node == name).unwrap();
                        prop_assert!(!world.members[node].is_ready);
                        let until = (rule.valid_until() - world.start).as_secs();
                        for second in began..until {
                            prop_assert!(!world.may_write(node, second), "{name} at {second} s: {:?}", world.power[node]);
                        }
                    }
                }
            }
        }
    }
}

/// A read in this second with these states, and none for an instance that it lacks.
fn read(start: Instant, second: u64, states: &[(usize, Option<InstanceStatus>)]) -> InstanceStates {
    let began = start + Duration::from_secs(second);
    let states = states
        .iter()
        .map(|(number, state)| (member(*number, true).instance, state.clone()));
    let states = states.collect();
    InstanceStates {
        began,
        ended: began,
        key: 0,
        states,
    }
}

/// The nodes that are due after reads with these states in these seconds, which the canary accompanies.
fn due_after(reads: &[(u64, Option<InstanceStatus>)]) -> usize {
    let (start, mut rule) = (Instant::now(), rule(50));
    let members = [member(0, true), member(1, true)];
    let running = [0, 1].map(|number| (number, Some(InstanceStatus::Running)));
    assert!(rule.record(&read(start, 0, &running), &members));
    let members = [member(0, true), member(1, false)];
    for (second, state) in reads {
        let states = [(0, Some(InstanceStatus::Running)), (1, state.clone())];
        assert!(rule.record(&read(start, *second, &states), &members));
    }
    rule.due(&members).0.len()
}

#[test]
fn stopped_instances_are_due_after_the_grace_period_and_released_ones_after_a_minute() {
    use InstanceStatus::{Running, Starting, Stopped, Stopping};
    let stopped = |second| (second, Some(Stopped));
    let missing = |second| (second, None);
    assert_eq!(due_after(&[stopped(0)]), 0);
    assert_eq!(due_after(&[stopped(0), stopped(4)]), 0);
    assert_eq!(due_after(&[stopped(0), stopped(5)]), 1);
    assert_eq!(due_after(&[missing(0), missing(10), missing(59)]), 0);
    assert_eq!(due_after(&[missing(0), missing(10), missing(60)]), 1);
    assert_eq!(due_after(&[stopped(0), missing(1), missing(60)]), 0);
    for other in [
        Running,
        Starting,
        Stopping,
        InstanceStatus::Pending,
        InstanceStatus::Unknown("Locked".to_owned()),
    ] {
        let reads = [(0, Some(other.clone())), (3600, Some(other.clone()))];
        assert_eq!(due_after(&reads), 0, "{other:?}");
    }
}

#[test]
fn a_share_of_the_nodes_is_out_of_service_at_once() {
    use InstanceStatus::{Running, Stopped};
    let start = Instant::now();
    for (percent, nodes, out_of_service, expected) in [
        (20, 10, 0, 2),
        (20, 10, 1, 1),
        (20, 10, 2, 0),
        (1, 3, 0, 1),
        (1, 3, 1, 0),
    ] {
        let mut rule = rule(percent);
        let mut members: Vec<Member> = (0..nodes).map(|number| member(number, number == 0)).collect();
        for member in members.iter_mut().rev().take(out_of_service) {
            member.out_of_service = Some("nodeshutdown".to_owned());
        }
        let states: Vec<_> = (0..nodes)
            .map(|number| (number, Some(if number == 0 { Running } else { Stopped })))
            .collect();
        for second in [0, 60] {
            rule.record(&read(start, second, &states), &members);
        }
        assert_eq!(
            rule.due(&members).0.len(),
            expected,
            "{percent} % of {nodes}, {out_of_service} out of service"
        );
    }
}

#[test]
fn an_instance_that_was_never_returned_is_not_released() {
    let (start, mut rule) = (Instant::now(), rule(50));
    let running = (0, Some(InstanceStatus::Running));
    let states = [running.clone(), (1, None)];
    // Another region, or a key that may not describe it.
    assert!(rule.is_new(&member(1, true)));
    rule.record(&read(start, 0, &states), &[member(0, true), member(1, true)]);
    assert!(!rule.is_new(&member(1, true)));
    let members = [member(0, true), member(1, false)];
    for second in [10, 90] {
        assert!(rule.record(&read(start, second, &states), &members));
    }
    assert_eq!(rule.due(&members), (Vec::new(), 0));
}

#[test]
fn a_node_whose_csinode_has_no_owner_is_neither_fenced_nor_a_canary() {
    let start = Instant::now();
    let states = [(0, Some(InstanceStatus::Running)), (1, Some(InstanceStatus::Stopped))];
    for (has_owner, expected) in [([true, true], Some(1)), ([true, false], Some(0)), ([false, true], None)] {
        let mut rule = rule(50);
        let mut members = [member(0, true), member(1, false)];
        for (member, has_owner) in members.iter_mut().zip(has_owner) {
            member.has_owner = has_owner;
        }
        let counts = [0, 60].map(|second| rule.record(&read(start, second, &states), &members));
        assert_eq!(counts, [expected.is_some(); 2], "{has_owner:?}");
        assert_eq!(rule.due(&members).0.len(), expected.unwrap_or(0), "{has_owner:?}");
    }
}
