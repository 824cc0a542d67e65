//! The least time that an RPC can take on any driver, as a distribution: the cloud's own delay from when its order
//! arrives, and the latency of the describe that shows the end.

use crate::dice::Dice;
use crate::times::{Percentiles, percentiles};

const SAMPLES: usize = 100_000;

/// Where an instance does one operation at a time, so many queue for it at once.
pub(crate) fn of(rpc: &str, queue: usize) -> Percentiles {
    let mut dice = Dice(1);
    let mut times = Vec::with_capacity(SAMPLES);
    while times.len() < SAMPLES {
        let mut waited = 0.0;
        for _ in 0..queue {
            waited += operation(rpc, &mut dice);
            times.push(waited);
        }
    }
    percentiles(times)
}

/// As [`of`], where so many volumes of one node move to another one, and each instance does one operation at a time.
pub(crate) fn moved(rpc: &str, volumes: usize) -> Percentiles {
    let mut dice = Dice(1);
    let (mut detaches, mut attaches) = (Vec::new(), Vec::new());
    while detaches.len() < SAMPLES {
        let (mut detached, mut attached) = (0.0_f64, 0.0_f64);
        for _ in 0..volumes {
            detached += operation("ControllerUnpublishVolume", &mut dice);
            attached = attached.max(detached) + operation("ControllerPublishVolume", &mut dice);
            detaches.push(detached);
            attaches.push(attached - detached);
        }
    }
    match rpc {
        "ControllerUnpublishVolume" => percentiles(detaches),
        "ControllerPublishVolume" => percentiles(attaches),
        rpc => of(rpc, 1),
    }
}

fn operation(rpc: &str, dice: &mut Dice) -> f64 {
    let latency = |dice: &mut Dice| dice.lognormal(0.06, 0.6);
    let delay = match rpc {
        "CreateVolume" => dice.between(0.5, 1.5),
        "ControllerPublishVolume" | "ControllerUnpublishVolume" => dice.between(2.0, 4.0),
        // Nothing is waited for but the response.
        _ => return latency(dice),
    };
    let response = latency(dice);
    delay.max(response) + latency(dice)
}
