//! The environment of the demo: a fake cloud, a controller and two nodes, each with its own socket.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ecs::sign::Scheme;
use fake_ecs::{Backing, Cloud, Node, Options};
use tokio_util::sync::CancellationToken;

use super::show::print_line;
use crate::app::{cloud, controller, mock_cloud, node};
use crate::base::{Deadline, Tasks};
use crate::csi::node::Service;
use crate::csi::server;
use crate::csi::services::Services;
use crate::linux::{Capability, Host, Linux, ProcessExec, Roots};
use crate::model::{ClusterId, DriverName, Filesystem, RegionId};
use crate::node::{InstanceTypeSource, NodeSettings};

const REGION: &str = "cn-beijing";
const CLUSTER: &str = "demo";

/// Delays like the shortest of the real cloud.
const CLOUD: [&str; 5] = [
    "--nodes=2",
    "--create-delay=500ms",
    "--attach-delay=1s",
    "--detach-delay=1s",
    "--snapshot-delay=2s",
];

/// How long running calls may take after the demo is stopped.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

const HOST_TIMEOUT: Duration = Duration::from_secs(5);

/// How long mounts may stay busy: an interrupted write finishes by itself.
const UNMOUNT_TIMEOUT: Duration = Duration::from_secs(15);
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct World {
    pub(super) directory: PathBuf,
    /// Without root, no node plugins run: they need it for block devices.
    pub(super) root: bool,
    scheme: Scheme,
    fake: Option<Cloud>,
    stop: CancellationToken,
    servers: Tasks,
    host: Linux,
}

impl World {
    /// An environment that is not started yet, in a new directory.
    pub(super) fn new(root: bool, scheme: Scheme) -> anyhow::Result<Self> {
        let name = format!("diskplugin-demo-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        Ok(Self {
            directory: directory.canonicalize()?,
            root,
            scheme,
            fake: None,
            stop: CancellationToken::new(),
            servers: Tasks::default(),
            host: Linux::new(Arc::new(ProcessExec), Roots::default()),
        })
    }

    pub(super) fn fake(&self) -> anyhow::Result<Cloud> {
        self.fake.clone().context("the fake cloud is not started")
    }

    /// The first or second node.
    pub(super) fn node(&self, number: usize) -> anyhow::Result<Node> {
        let node = self.fake()?.nodes().into_iter().nth(number);
        node.context("the fake cloud has two nodes")
    }

    pub(super) fn controller_socket(&self) -> PathBuf {
        self.directory.join("controller.sock")
    }

    pub(super) fn node_socket(&self, number: usize) -> PathBuf {
        self.directory.join(format!("node-{}.sock", number + 1))
    }

    /// kubelet directory of a node.
    pub(super) fn kubelet(&self, number: usize) -> PathBuf {
        self.directory.join(format!("kubelet-{}", number + 1))
    }

    /// Where the volume of a node is published.
    pub(super) fn pod(&self, number: usize) -> PathBuf {
        self.kubelet(number).join("pod")
    }

    /// The default filesystem: ext4 if this machine can grow a mounted one.
    pub(super) async fn filesystem(&self) -> anyhow::Result<Filesystem> {
        let capabilities = self.host.capabilities(Deadline::after(HOST_TIMEOUT)).await?;
        if !self.root || capabilities.has(Capability::SysResource) {
            return Ok(Filesystem::default());
        }
        print_line("CAP_SYS_RESOURCE is missing, which growing a mounted ext4 requires: using xfs.")?;
        Ok(Filesystem::Xfs)
    }

    /// Starts the cloud, the controller and the nodes.
    pub(super) async fn start(&mut self) -> anyhow::Result<()> {
        let mut options = Options::from_flags(CLOUD)?;
        REGION.clone_into(&mut options.region);
        // Both nodes in one zone, so that a zonal disk can move between them.
        options.zones = vec![format!("{REGION}-a")];
        if self.root {
            options.back_with = Backing::Loop;
            options.device_dir = Some(self.directory.join("devices"));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
        let fake = self.fake.insert(mock_cloud::start(&options, listener).await?).clone();
        self.start_controller(&fake)?;
        if self.root {
            self.start_node(&fake, 0)?;
            self.start_node(&fake, 1)?;
        }
        Ok(())
    }

    fn start_controller(&self, fake: &Cloud) -> anyhow::Result<()> {
        let region: RegionId = REGION.parse()?;
        let ecs = cloud::fake_client(fake, &region, self.scheme)?.ecs;
        let zone = Some(self.node(0)?.zone.parse()?);
        let tasks = Tasks::default();
        let cluster: ClusterId = CLUSTER.parse()?;
        let disks = controller::disks(ecs, cluster.clone(), &tasks);
        let service = controller::service(disks, region, zone, &cluster, &tasks);
        let services = Services::new(DriverName::default()).with_controller(service);
        self.serve(&self.controller_socket(), services, tasks)
    }

    fn start_node(&self, fake: &Cloud, number: usize) -> anyhow::Result<()> {
        let own = self.node(number)?;
        let settings = NodeSettings {
            device_dir: fake.device_dir(&own.id),
            id: own.id.parse()?,
            zone: own.zone.parse()?,
            max_volumes: None,
            categories: Vec::new(),
            instance_types: InstanceTypeSource::default(),
            kubelet_dir: self.kubelet(number),
            state_dir: self.directory.join("state"),
        };
        let node = node::services(settings, DriverName::default(), None);
        let tasks = node.tasks().clone();
        let services = Services::new(DriverName::default()).with_node(Service(node));
        self.serve(&self.node_socket(number), services, tasks)
    }

    fn serve(&self, socket: &Path, services: Services, tasks: Tasks) -> anyhow::Result<()> {
        let endpoint = format!("unix://{}", socket.display()).parse()?;
        let stop = self.stop.clone().cancelled_owned();
        self.servers.spawn(async move {
            if let Err(error) = server::serve(&endpoint, services, tasks, stop, DRAIN_TIMEOUT).await {
                tracing::error!(%endpoint, "{}", crate::base::error_chain(&error));
            }
        });
        Ok(())
    }

    /// Stops the servers and removes all mounts, devices and files.
    pub(super) async fn clean_up(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.servers.wait().await;
        let unmounted = self.unmount_all().await;
        let ended = match self.fake.take() {
            Some(fake) => fake.shutdown().await,
            None => Ok(()),
        };
        unmounted?;
        let directory = &self.directory;
        std::fs::remove_dir_all(directory).with_context(|| format!("cannot remove {}", directory.display()))?;
        Ok(ended?)
    }

    /// Unmounts everything below the directory, topmost mounts first, and retries while a mount is busy.
    async fn unmount_all(&self) -> anyhow::Result<()> {
        let last = Deadline::after(UNMOUNT_TIMEOUT);
        let mut tick = tokio::time::interval(RETRY_INTERVAL);
        loop {
            tick.tick().await;
            let deadline = Deadline::after(HOST_TIMEOUT);
            let mounts = self
                .host
                .mounts(deadline)
                .await
                .context("cannot read the mount table")?;
            let below = mounts
                .iter()
                .rev()
                .filter(|mount| mount.point.starts_with(&self.directory));
            let mut failed = None;
            for mount in below {
                failed = self.host.unmount(deadline, &mount.point).await.err().or(failed);
            }
            match failed {
                None => return Ok(()),
                Some(error) if last.has_passed() => return Err(error).context("cannot unmount"),
                Some(_) => {}
            }
        }
    }

    /// Prints the endpoints of everything that keeps running.
    pub(super) fn print_endpoints(&self) -> anyhow::Result<()> {
        let endpoint = self.fake.as_ref().and_then(Cloud::endpoint).unwrap_or_default();
        let controller = self.controller_socket();
        print_line("\nEverything keeps running until Ctrl-C:")?;
        print_line(format_args!("  controller   unix://{}", controller.display()))?;
        if self.root {
            for number in 0..2 {
                let socket = self.node_socket(number);
                print_line(format_args!("  node {}       unix://{}", number + 1, socket.display()))?;
            }
            print_line(format_args!("  volume       {}", self.pod(1).display()))?;
        }
        print_line(format_args!("  cloud        curl {endpoint}/_control/state"))?;
        print_line(format_args!("               curl {endpoint}/_control/calls"))
    }
}
