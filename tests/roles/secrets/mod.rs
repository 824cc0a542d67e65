//! Access keys, secrets, tokens, signatures and `secrets` of CSI calls never appear in output or responses of the
//! program.

mod calls;
mod debug;
mod hidden;
mod hostile;
mod roles;
mod script;
