//! Every field of every controller request with invalid values: each is rejected with the expected code and the name of
//! the field, before any cloud call. The fields are read from the proto; a field without a rule here fails.

mod base;
mod every;
mod field;
mod random;
mod rpc;
mod rule;
mod spoil;
