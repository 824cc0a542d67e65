//! Clouds that respond late, wrongly or not at all, and processes with canceled calls or that are killed or replaced.

use std::time::Duration;

use serde_json::{Value, json};

use diskplugin::disk::Error;

mod attach;
mod cost;
mod create;
mod faulty_ecs;
mod lifecycle;
mod no_final_code;
mod stale_reads;
mod wrong_responses;

use faulty_ecs::{Fault, faulty_services};

fn is_final(error: &Error) -> bool {
    error.failure_kind().is_final()
}

async fn sleep(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn error_code(status: u16, code: &str) -> Value {
    json!({"code": {"status": status, "code": code}})
}
