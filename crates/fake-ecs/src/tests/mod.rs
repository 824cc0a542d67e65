//! Rules of the fake cloud, in virtual time.

mod audit;
mod kit;
mod lifecycle;
mod matrix;
mod reads;
mod rules;
mod seed;
mod snapshots;
