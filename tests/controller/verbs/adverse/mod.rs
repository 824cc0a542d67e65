//! Clouds that respond late, wrongly or not at all, and processes with canceled calls or that are killed or replaced.

mod attach;
mod cost;
mod create;
mod faulty_ecs;
mod lifecycle;
mod no_final_code;
mod stale_reads;
mod wrong_responses;

use faulty_ecs::{Fault, faulty_services};
