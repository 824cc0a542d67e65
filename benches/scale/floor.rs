//! The lower bound of the time of an RPC for any driver, as a distribution: the delay of the cloud from the arrival of
//! the request, and the latency of the describe call that shows the result.

use super::dice::Dice;
use super::times::{Percentiles, percentiles};

const SAMPLES: usize = 100_000;

/// With this number of volumes in the queue of an instance that executes one operation at a time.
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

/// Like [`of`], for volumes that move from one node to another; each instance executes one operation at a time.
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
        // Only the response is waited for.
        _ => return latency(dice),
    };
    let response = latency(dice);
    delay.max(response) + latency(dice)
}
