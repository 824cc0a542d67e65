//! A controller with an HTTP port, between a fake cloud and its callers.

use tempfile::TempDir;
use tonic::transport::Channel;

use crate::common::csi::socket;
use crate::common::fake::Fake;
use crate::common::process::Process;
use crate::http_client::address;

/// The processes end with it.
pub(crate) struct Served {
    pub(crate) fake: Fake,
    _controller: Process,
    pub(crate) channel: Channel,
    /// The URL of the HTTP port.
    pub(crate) http: String,
    _directory: TempDir,
}

impl Served {
    /// With these flags of the fake cloud and of the controller.
    pub(crate) async fn start(cloud: &[&str], flags: &[&str]) -> Self {
        let (fake, directory) = (Fake::start(cloud).await, tempfile::tempdir().unwrap());
        let socket = socket(&directory);
        let start = fake.controller(&socket).keys();
        let start = start.args(["--http-address=127.0.0.1:0"]).args(flags);
        let (controller, channel) = start.ready(&socket).await;
        Self {
            http: address(&controller).await,
            fake,
            _controller: controller,
            channel,
            _directory: directory,
        }
    }
}
