//! Every field of every controller request, spoilt in every way: refused with the right code and by
//! name, before any cloud call. The fields are read from the proto: one without a rule here fails.

mod base;
mod every;
mod field;
mod random;
mod rpc;
mod rule;
mod spoil;
