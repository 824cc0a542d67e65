//! Programs that benches start, measure and stop.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use diskplugin::csi::proto::ProbeRequest;
use diskplugin::csi::proto::identity_client::IdentityClient;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{Instant, timeout};
use tonic::transport::{Channel, Endpoint};

pub(crate) const REGION: &str = "cn-beijing";
pub(crate) const ZONE: &str = "cn-beijing-a";

/// Timeout of the start and the end of a program.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The default access key of the fake cloud.
const KEY: [(&str, &str); 2] = [
    ("ACCESS_KEY_ID", "LTAI5tFAKECLOUDKEY000001"),
    ("ACCESS_KEY_SECRET", "fake-cloud-secret"),
];

/// A running `diskplugin`; killed when dropped.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    log: PathBuf,
    /// Kept open, because a closed pipe terminates the program when it prints.
    stdout: Option<Lines<BufReader<ChildStdout>>>,
}

impl Program {
    /// Starts a role, with its log in a file of the directory.
    pub(crate) fn start(binary: &Path, dir: &Path, args: &[&str]) -> anyhow::Result<Self> {
        Self::start_with(binary, dir, args, &[])
    }

    /// Like [`Program::start`], with more variables.
    #[expect(
        clippy::disallowed_methods,
        reason = "these are the measured processes, not tools of the host"
    )]
    pub(crate) fn start_with(
        binary: &Path,
        dir: &Path,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let role = args.first().context("no role")?;
        let log = dir.join(format!("{role}.log"));
        let file = std::fs::File::create(&log)?;
        // The environment of the caller could set flags.
        let child = Command::new(binary)
            .args(args)
            .env_clear()
            .envs(KEY)
            // The tools of filesystems.
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        Ok(Self {
            child,
            log,
            stdout: None,
        })
    }

    /// Starts a fake cloud on a free port of the loopback interface, and returns its endpoint.
    pub(crate) async fn fake_cloud(binary: &Path, dir: &Path, flags: &[&str]) -> anyhow::Result<(Self, String)> {
        let mut args = vec!["mock-cloud", "--listen=127.0.0.1:0", "--region", REGION];
        args.extend(["--zones", ZONE]);
        args.extend(flags);
        let mut program = Self::start(binary, dir, &args)?;
        let stdout = program.child.stdout.take().context("stdout is piped")?;
        // Its first line ends with the endpoint.
        let mut lines = BufReader::new(stdout).lines();
        let first = timeout(TIMEOUT, lines.next_line()).await;
        program.stdout = Some(lines);
        let line = first.context("the fake cloud prints nothing")??;
        let line = line.with_context(|| program.last_lines())?;
        let endpoint = line.split_whitespace().last();
        Ok((program, endpoint.context("no endpoint")?.to_owned()))
    }

    /// Starts a controller on this cloud.
    pub(crate) fn controller(binary: &Path, dir: &Path, cloud: &str) -> anyhow::Result<Self> {
        let endpoint = format!("unix://{}", socket(dir, "controller").display());
        let mut args = vec!["controller", "--endpoint", &endpoint];
        args.extend(["--region", REGION, "--zone", ZONE]);
        args.extend(["--cluster-id", "bench", "--ecs-endpoint", cloud]);
        Self::start(binary, dir, &args)
    }

    /// Waits until the role reports ready.
    pub(crate) async fn ready(&mut self, socket: &Path) -> anyhow::Result<Channel> {
        let endpoint = Endpoint::try_from(format!("unix://{}", socket.display()))?;
        let start = Instant::now();
        let mut tick = tokio::time::interval(Duration::from_millis(1));
        loop {
            tick.tick().await;
            if let Ok(channel) = endpoint.connect().await {
                let mut identity = IdentityClient::new(channel.clone());
                // No `ready` means ready (CSI, `ProbeResponse`).
                let probed = identity.probe(ProbeRequest {}).await;
                if probed.is_ok_and(|r| r.get_ref().ready != Some(false)) {
                    return Ok(channel);
                }
            }
            if self.child.try_wait()?.is_some() || start.elapsed() > TIMEOUT {
                bail!("it did not become ready: {}", self.last_lines());
            }
        }
    }

    /// A line of `/proc/PID/status`, in KiB: `VmHWM` is the peak of resident memory, `VmRSS` the
    /// current value.
    pub(crate) fn memory_kib(&self, field: &str) -> anyhow::Result<u64> {
        let pid = self.child.id().context("it has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number.context("no such field")?.parse()?)
    }

    /// Its CPU time, in user and kernel mode.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let pid = self.child.id().context("it has ended")?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // proc_pid_stat(5): the second field is in parentheses and may hold anything; utime and stime are the 14th and
        // 15th.
        let (_, rest) = stat.rsplit_once(')').context("no command")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |field: usize| -> anyhow::Result<u32> { Ok(fields.get(field - 3).context("too short")?.parse()?) };
        let per_second = sysconf(SysconfVar::CLK_TCK)?.context("no clock tick")?;
        let per_second = u32::try_from(per_second)?;
        Ok(Duration::from_secs(1) * (ticks(14)? + ticks(15)?) / per_second)
    }

    /// Stops it as kubelet does; it must succeed.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let pid = self.child.id().context("it has ended")?;
        kill(Pid::from_raw(i32::try_from(pid)?), Signal::SIGTERM)?;
        let ended = timeout(TIMEOUT, self.child.wait()).await;
        let status = ended.context("it did not end after SIGTERM")??;
        ensure!(status.success(), "it ended with {status}: {}", self.last_lines());
        Ok(())
    }

    fn last_lines(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(10).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

/// The median time from the start of a controller to its first `Probe` with ready.
pub(crate) async fn start_time(binary: &Path, cloud: &str, starts: usize) -> anyhow::Result<Duration> {
    let mut times = Vec::with_capacity(starts);
    for _ in 0..starts {
        let dir = tempfile::tempdir()?;
        let start = Instant::now();
        let mut controller = Program::controller(binary, dir.path(), cloud)?;
        controller.ready(&socket(dir.path(), "controller")).await?;
        times.push(start.elapsed());
        controller.stop().await?;
    }
    times.sort_unstable();
    times.get(starts / 2).copied().context("no start")
}

/// The arguments, without the flag that cargo adds.
pub(crate) fn named() -> Vec<PathBuf> {
    let words = std::env::args_os().skip(1).map(PathBuf::from);
    words.filter(|word| word.as_path() != Path::new("--bench")).collect()
}

/// The socket of a role.
pub(crate) fn socket(dir: &Path, role: &str) -> PathBuf {
    dir.join(format!("{role}.sock"))
}

/// Runs the bench.
pub(crate) fn run(bench: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(bench)
}
