//! A pod of the controller without kubelet: each container of its spec is a process, which is restarted when it ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::address::Address;
use crate::api::text;
use crate::common::process::{Process, Start};
use crate::program::{built, of_driver, tied};

const RESTART_DELAY: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A running pod. Dropping it kills its processes.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) name: String,
    /// The directories of its volumes.
    pub(crate) volumes: PathBuf,
    pub(crate) containers: Vec<Arc<Container>>,
    tasks: JoinSet<()>,
}

#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) name: String,
    /// Address and port of its probes.
    pub(crate) health: Option<String>,
    /// The paths of its probes.
    pub(crate) probes: Vec<String>,
    program: PathBuf,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: Option<Process>,
    /// The logs of the previous processes.
    previous: Vec<String>,
}

/// The environment of a pod.
#[derive(Debug)]
pub(crate) struct PodEnvironment<'a> {
    pub(crate) address: &'a Address,
    /// Directory of its volumes.
    pub(crate) volumes: PathBuf,
    pub(crate) kubeconfig: &'a str,
}

impl Replica {
    /// Starts the containers of a pod.
    pub(crate) fn start(pod: &Value, environment: &PodEnvironment<'_>) -> Self {
        let name = text(pod, "/metadata/name").to_owned();
        let specs = pod["spec"]["containers"].as_array().expect("a pod has containers");
        let containers = specs
            .iter()
            .map(|spec| Arc::new(Container::new(pod, spec, environment)));
        let containers: Vec<_> = containers.collect();
        let mut tasks = JoinSet::new();
        for container in &containers {
            tasks.spawn(Arc::clone(container).run());
        }
        Self {
            name,
            volumes: environment.volumes.clone(),
            containers,
            tasks,
        }
    }

    /// The CSI socket of the driver.
    pub(crate) fn socket(&self) -> PathBuf {
        self.volumes.join("socket/csi.sock")
    }

    pub(crate) fn container(&self, name: &str) -> &Container {
        let found = self.containers.iter().find(|container| container.name == name);
        found.unwrap_or_else(|| panic!("no container {name} in {}", self.name))
    }

    /// Terminates all processes as kubelet does, and waits until they have ended.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
        for container in &self.containers {
            if let Some(process) = container.state().running.as_ref() {
                process.signal(Signal::SIGTERM);
            }
        }
        for container in &self.containers {
            let running = container.state().running.take();
            if let Some(process) = running {
                process.ended().await;
            }
        }
    }

    /// Kills the process of each container, which is then restarted.
    pub(crate) fn kill_containers(&self) {
        for container in &self.containers {
            if let Some(process) = container.state().running.as_ref() {
                process.signal(Signal::SIGKILL);
            }
        }
    }

    /// Kills all processes without a restart.
    pub(crate) async fn kill(mut self) {
        self.tasks.shutdown().await;
        for container in &self.containers {
            container.state().running.take();
        }
    }
}

impl Container {
    fn new(pod: &Value, spec: &Value, environment: &PodEnvironment<'_>) -> Self {
        let name = text(spec, "/name");
        let volumes = volumes(spec, &environment.volumes);
        let mut health = None;
        let args = list(spec, "args").map(|arg| {
            let arg = arg.as_str().expect("an argument is a string");
            if let Some((flag @ ("--http-address" | "--http-endpoint"), _)) = arg.split_once('=') {
                let listen = environment.address.listen();
                let arg = format!("{flag}={listen}");
                health = Some(listen);
                return arg;
            }
            at(arg, &volumes)
        });
        let mut args: Vec<String> = args.collect();
        let program = match name {
            "diskplugin" => of_driver(spec).to_owned(),
            sidecar => {
                args.push("--retry-interval-start=200ms".to_owned());
                built(sidecar)
            }
        };
        // Instead of the mounted token.
        if list(spec, "volumeMounts").any(|mount| mount["name"] == "api") {
            args.push(format!("--kubeconfig={}", environment.kubeconfig));
        }
        let env = list(spec, "env").map(|env| (text(env, "/name").to_owned(), value(env, pod)));
        let probes = ["livenessProbe", "readinessProbe"];
        let probes = probes
            .iter()
            .filter_map(|probe| spec[probe]["httpGet"]["path"].as_str());
        let probes = probes.map(str::to_owned).collect();
        Self {
            name: name.to_owned(),
            health,
            probes,
            program,
            args,
            env: env.collect(),
            state: Mutex::default(),
        }
    }

    /// Runs the container and restarts it when it ends.
    async fn run(self: Arc<Self>) {
        loop {
            self.state().running = Some(self.command().spawn());
            while !self.is_over() {
                sleep(POLL_INTERVAL).await;
            }
            sleep(RESTART_DELAY).await;
        }
    }

    fn command(&self) -> Start {
        let start = tied(&self.program).args(&self.args);
        self.env
            .iter()
            .fold(start, |start, (name, value)| start.env(name, value))
    }

    fn is_over(&self) -> bool {
        let mut state = self.state();
        let over = state.running.as_mut().is_none_or(Process::is_over);
        if over && let Some(ended) = state.running.take() {
            state.previous.push(ended.stderr());
        }
        over
    }

    pub(crate) fn restarts(&self) -> usize {
        self.state().previous.len()
    }

    /// The logs of the container, including those before its restarts.
    pub(crate) fn logs(&self) -> String {
        let state = self.state();
        let now = state.running.as_ref().map(Process::stderr);
        let all = state.previous.iter().cloned().chain(now);
        all.collect::<Vec<_>>().join("--- restarted ---\n")
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Mount path and directory of each volume, the longest path first.
fn volumes(spec: &Value, directory: &Path) -> Vec<(String, String)> {
    let mounts = list(spec, "volumeMounts").map(|mount| {
        let volume = directory.join(text(mount, "/name"));
        std::fs::create_dir_all(&volume).expect("the directory can be written");
        (text(mount, "/mountPath").to_owned(), volume.display().to_string())
    });
    let mut mounts: Vec<_> = mounts.collect();
    mounts.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    mounts
}

/// The argument, with mount paths replaced by directories.
fn at(arg: &str, volumes: &[(String, String)]) -> String {
    let found = volumes.iter().find(|(path, _)| arg.contains(path.as_str()));
    found.map_or_else(|| arg.to_owned(), |(path, directory)| arg.replacen(path, directory, 1))
}

/// The value of an environment variable, including pod fields.
fn value(env: &Value, pod: &Value) -> String {
    if let Some(value) = env["value"].as_str() {
        return value.to_owned();
    }
    let field = text(env, "/valueFrom/fieldRef/fieldPath");
    let pointer = format!("/{}", field.replace('.', "/"));
    text(pod, &pointer).to_owned()
}

fn list<'a>(body: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    body[name].as_array().into_iter().flatten()
}
