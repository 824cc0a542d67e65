//! A second machine: a mount and a network namespace in the sandbox, with the same paths.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;

use crate::cluster::{INSTANCE, SECOND_INSTANCE};
use crate::command::{run, succeed};
use crate::common::process::{Process, Start};
use crate::network::{Network, SECOND, UPLINK};
use crate::worker::HIDDEN;

/// The namespaces of the second machine, which end after the last process in them.
#[derive(Debug)]
pub(crate) struct Site {
    holder: Process,
}

impl Site {
    /// Creates it. Its files are in `own`, below the directory of the cluster.
    pub(crate) async fn make(directory: &Path, own: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/site");
        let paths: [PathBuf; 3] = [script, directory.to_owned(), own.to_owned()];
        let start = Start::with_pdeathsig("unshare").args(["--mount", "--net", "--propagation=private"]);
        let start = start.args(paths.map(|path| path.display().to_string()));
        let mut holder = start.args([INSTANCE, SECOND_INSTANCE]).args(HIDDEN).spawn();
        holder.wait_for_output("ready").await;
        let site = Self { holder };
        site.connect(&SECOND).await;
        site
    }

    /// A process in its mount namespace.
    pub(crate) fn pid(&self) -> Pid {
        self.holder.pid()
    }

    /// A program in its namespaces.
    pub(crate) fn start(&self, program: &str) -> Start {
        let pid = self.holder.pid().to_string();
        let enter = ["--target", &pid, "--mount", "--net", "--", program];
        Start::with_pdeathsig("nsenter").args(enter)
    }

    /// Creates the network between the second machine and the sandbox.
    async fn connect(&self, network: &Network) {
        let pid = self.holder.pid().to_string();
        let (pods, node, uplink) = (network.pods(), network.node.to_string(), UPLINK.to_string());
        let address = |ip: Ipv4Addr| format!("{ip}/30");
        let ours = [
            "link", "add", "second", "type", "veth", "peer", "name", "eth0", "netns", &pid,
        ];
        run("ip", &ours).await;
        run("ip", &["address", "add", &address(UPLINK), "dev", "second"]).await;
        run("ip", &["link", "set", "second", "up"]).await;
        for theirs in [
            ["link", "set", "lo", "up"].as_slice(),
            &["address", "add", &address(network.node), "dev", "eth0"],
            &["link", "set", "eth0", "up"],
            &["route", "add", "default", "via", &uplink],
        ] {
            succeed(self.start("ip").args(theirs)).await;
        }
        run("ip", &["route", "add", &pods, "via", &node]).await;
    }
}
