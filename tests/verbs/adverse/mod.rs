//! Clouds that answer late, wrongly or not at all, and processes that are cut off, killed or replaced.

use std::time::Duration;

use serde_json::{Value, json};

use diskplugin::disk::Error;

mod attach;
mod cost;
mod create;
mod hidden;
mod lag;
mod lives;
mod no_final_code;
mod twisted;

use twisted::{Twist, twisted};

fn is_final(error: &Error) -> bool {
    error.failure_kind().is_final()
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn code(status: u16, code: &str) -> Value {
    json!({"code": {"status": status, "code": code}})
}
