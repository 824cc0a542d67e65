//! Carries out the events of a schedule.

use std::sync::Arc;
use std::time::Duration;

use diskplugin::base::Deadline;
use ecs::DetachDisk;
use fake_ecs::ExistingDisk;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::facts::Facts;
use crate::schedule::{CALM, EventKind, Schedule, healthy};
use crate::world::World;

/// Runs until the last event is over; then the cloud is healthy.
pub(crate) async fn run(world: Arc<World>, facts: Arc<Facts>, schedule: Schedule) {
    let start = Instant::now();
    let mut steps: Vec<_> = (schedule.events.iter().enumerate())
        .map(|(number, event)| (event.at, number, true))
        .collect();
    for (number, event) in schedule.events.iter().enumerate() {
        if let EventKind::Disturb { period, .. } = event.kind {
            steps.push(((event.at + period).min(CALM), number, false));
        }
    }
    steps.sort();
    let mut active: Vec<usize> = Vec::new();
    for (at, number, begins) in steps {
        tokio::time::sleep_until(start + at).await;
        match &schedule.events[number].kind {
            EventKind::Disturb { patch, .. } => {
                active.retain(|other| *other != number);
                if begins {
                    active.push(number);
                }
                let verb = if begins { "begins" } else { "ends" };
                world.history.record(&format!("disturbance {verb}: {patch}"));
                configure(&world, &schedule, &active);
            }
            EventKind::Kill { down } => {
                facts.state().kills += 1;
                let (world, down) = (Arc::clone(&world), *down);
                tokio::spawn(async move { world.restart(down).await });
            }
            EventKind::DetachBehind(claim) => {
                let name = schedule.claims[*claim].name.clone();
                tokio::spawn(detach_behind(Arc::clone(&world), Arc::clone(&facts), name));
            }
            EventKind::CreateForeign(_) => {
                let id = world.cloud.add_disk(&ExistingDisk {
                    category: "cloud_essd".to_owned(),
                    zone: Some("cn-beijing-a".to_owned()),
                    system: false,
                    portable: true,
                    instance: None,
                });
                world.history.record(&format!("operator creates {id}"));
                facts.state().foreign.push(id);
            }
            EventKind::Clock(seconds) => {
                world
                    .history
                    .record(&format!("the controller's clock is wrong by {seconds} s"));
                world.set_skew(*seconds);
            }
        }
    }
    tokio::time::sleep_until(start + CALM).await;
    configure(&world, &schedule, &[]);
    world.history.record("the cloud is healthy from now on");
}

/// Applies the active disturbances, which may concern the same keys. Faults add up.
fn configure(world: &World, schedule: &Schedule, active: &[usize]) {
    let mut patch = healthy();
    for number in active {
        let EventKind::Disturb { patch: one, .. } = &schedule.events[*number].kind else {
            continue;
        };
        for (section, change) in one.as_object().into_iter().flatten() {
            match (&mut patch[section], change) {
                (Value::Array(all), Value::Array(more)) => all.extend(more.iter().cloned()),
                (Value::Object(all), Value::Object(more)) => all.extend(more.clone()),
                (all, change) => *all = change.clone(),
            }
        }
    }
    // The same list would continue the counts of the previous one.
    let cleared = world.cloud.configure(&json!({"faults": []}));
    let configured = cleared.and_then(|()| world.cloud.configure(&patch));
    configured.expect("the configuration is valid");
}

/// An operator detaches the volume in the console.
async fn detach_behind(world: Arc<World>, facts: Arc<Facts>, name: String) {
    let target = facts.volume(&name, |volume| {
        volume.is_touched = true;
        Some((volume.id.as_ref()?.parse().ok()?, volume.node.as_ref()?.parse().ok()?))
    });
    let Some((disk, instance)) = target else {
        return;
    };
    world.history.record(&format!("operator detaches {disk}"));
    let request = DetachDisk {
        disk,
        instance,
        delete_with_instance: false,
    };
    let client = world.client(None, &Arc::default());
    // The operator does not repeat it.
    let _ = client
        .detach_disk(Deadline::after(Duration::from_secs(10)), &request)
        .await;
}
