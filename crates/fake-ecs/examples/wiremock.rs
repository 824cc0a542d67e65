//! Injects a fault with a mock: the mock responds to the first call, the fake cloud to the second one.
//!
//! `cargo run --package fake-ecs --features wiremock --example wiremock`

use std::sync::Arc;

use fake_ecs::{Cloud, Options, SystemClock};
use wiremock::matchers::query_param;
use wiremock::{Mock, MockServer, ResponseTemplate};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::from_flags(["--nodes=i-one"])?;
    let cloud = Cloud::in_memory(&options, Arc::new(SystemClock));
    let server = MockServer::start().await;
    cloud.mount(&server).await;
    Mock::given(query_param("Action", "DescribeRegions"))
        .respond_with(ResponseTemplate::new(503).set_body_string("maintenance"))
        .up_to_n_times(1)
        .mount(&server)
        .await;

    let call = format!("{}/?Action=DescribeRegions", server.uri());
    let rejected = reqwest::get(&call).await?;
    println!("the mock:       {} {}", rejected.status(), rejected.text().await?);
    // The fake cloud rejects the call, because it is not signed.
    let response = reqwest::get(&call).await?;
    println!("the fake cloud: {} {}", response.status(), response.text().await?);
    println!("calls that reached the fake cloud: {}", cloud.calls().len());
    Ok(())
}
