//! Continuous faults: calls fail before or after they take effect, connections end, and reads are stale. The lifecycles
//! of two hundred volumes with snapshots must end as without faults.
//!
//! `CHAOS_SEED=7 cargo test --test controller chaos::` runs with seeds from 7.

mod lists;
mod memory;
mod planted;
mod run;
mod wire;
