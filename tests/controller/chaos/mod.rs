//! Everything goes wrong all the time: calls fail before or after they took effect, connections end,
//! reads are old. Two hundred volumes with snapshots must live as on a calm day.
//!
//! `CHAOS_SEED=7 cargo test --test controller chaos::` runs with the seeds from 7 on.

mod lists;
mod memory;
mod planted;
mod run;
mod wire;
