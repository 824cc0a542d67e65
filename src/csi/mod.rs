//! The Container Storage Interface: requests in, answers out, errors as gRPC codes.

pub mod proto;
