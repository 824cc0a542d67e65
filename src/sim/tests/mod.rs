//! The rules of the world, in virtual time.

mod audit;
mod kit;
mod life;
mod matrix;
mod memory;
mod reads;
mod rules;
mod seed;
mod snapshots;
