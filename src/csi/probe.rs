//! Calls Probe on the socket of this process, as livenessprobe does.

use std::time::Duration;

use tonic::transport::Endpoint as Channels;

use super::proto::ProbeRequest;
use super::proto::identity_client::IdentityClient;
use super::socket::Endpoint;
use super::status::failure;
use crate::base::{Deadline, error_chain};
use crate::model::Failure;

#[derive(Debug)]
pub enum ProbeError {
    Stopping,
    /// No response, with the reason and what to do.
    Unresponsive(String),
}

pub async fn probe(endpoint: &Endpoint, timeout: Duration) -> Result<(), ProbeError> {
    let unresponsive = |reason: String| {
        ProbeError::Unresponsive(format!(
            "{endpoint} does not respond: {reason}; wait if the driver has just started, otherwise check its log"
        ))
    };
    let call = async {
        let channel = Channels::try_from(endpoint.to_string())?.connect().await?;
        let response = IdentityClient::new(channel).probe(ProbeRequest {}).await;
        Ok::<_, tonic::transport::Error>(response)
    };
    match Deadline::after(timeout).bound(call).await {
        Ok(Ok(Ok(_))) => Ok(()),
        Ok(Ok(Err(status))) if failure(&status) == Some(Failure::ShuttingDown) => Err(ProbeError::Stopping),
        Ok(Ok(Err(status))) => Err(unresponsive(status.message().to_owned())),
        Ok(Err(error)) => Err(unresponsive(error_chain(&error))),
        Err(_) => Err(unresponsive(format!("not within {} s", timeout.as_secs()))),
    }
}
