//! Whether the process lives, and whether it can do its work: what it can find out by itself, with what to do.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tonic::transport::Endpoint as Channels;

use super::tools;
use crate::base::Deadline;
use crate::base::chain::chain;
use crate::cloud::Standing;
use crate::cloud::credential::Provide;
use crate::cloud::standing::{Report, Silence, UNREACHED};
use crate::csi::proto::ProbeRequest;
use crate::csi::proto::identity_client::IdentityClient;
use crate::csi::registration::{Registration, Stage};
use crate::csi::socket::Endpoint;
use crate::model::Failure;
use crate::node::Node;

/// How long a check may take; all of them run side by side.
const PATIENCE: Duration = Duration::from_secs(3);

/// For how long a refusal or a silence counts, if nothing was called since. Who has nothing to do would otherwise never
/// learn that it is over.
const LATELY: Duration = Duration::from_mins(10);

/// Over how long attempts must have failed to call the cloud out of reach.
const SILENT: Duration = Duration::from_mins(1);

/// What is looked at.
#[derive(Debug)]
pub(crate) struct Health {
    /// The CSI socket.
    pub(crate) endpoint: Endpoint,
    /// The cloud, of a role that calls it.
    pub(crate) cloud: Option<Access>,
    /// The node, of a role that is one.
    pub(crate) node: Option<Arc<Node>>,
    /// Whether kubelet must see what the node mounts.
    pub(crate) shared: bool,
    /// The registration with kubelet, where this process sees to it.
    pub(crate) registration: Option<Registration>,
}

/// How the cloud is called.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    /// How it has answered lately.
    pub(crate) standing: Standing,
    /// Where the credentials come from.
    pub(crate) provider: Arc<dyn Provide>,
}

/// Something that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// What.
    pub(crate) name: &'static str,
    /// Whether it is well.
    pub(crate) ok: bool,
    /// How it is, and what to do.
    pub(crate) message: String,
}

/// All that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Readiness {
    /// Whether all of it is well.
    pub(crate) ready: bool,
    /// Each.
    pub(crate) checks: Vec<Check>,
}

impl Check {
    fn new(name: &'static str, outcome: Result<String, String>) -> Self {
        let ok = outcome.is_ok();
        Self {
            name,
            ok,
            message: outcome.unwrap_or_else(|message| message),
        }
    }
}

impl Health {
    /// Whether the process answers on its own socket; also while it ends.
    pub(crate) async fn alive(&self) -> Check {
        let outcome = match probe(&self.endpoint).await {
            Ok(()) => Ok("it answers".to_owned()),
            Err(Trouble::Stopping) => Ok(STOPPING.to_owned()),
            Err(Trouble::Silent(message)) => Err(message),
        };
        Check::new("socket", outcome)
    }

    /// Whether it can do its work.
    pub(crate) async fn ready(&self) -> Readiness {
        let (socket, credentials, devices, mounts, state) = tokio::join!(
            self.socket(),
            self.credentials(),
            self.devices(),
            self.mounts(),
            self.state()
        );
        let report = self.cloud.as_ref().map(|cloud| cloud.standing.report());
        let reached = report.map(|report| Check::new("cloud", reached(&report)));
        let registration = self.registration.as_ref().map(registered);
        let tools = self.node.as_ref().map(|_| Check::new("tools", tools()));
        let all = [
            Some(socket),
            credentials,
            reached,
            devices,
            mounts,
            state,
            tools,
            registration,
        ];
        let checks: Vec<Check> = all.into_iter().flatten().collect();
        Readiness {
            ready: checks.iter().all(|check| check.ok),
            checks,
        }
    }

    async fn socket(&self) -> Check {
        let outcome = match probe(&self.endpoint).await {
            Ok(()) => Ok("it answers".to_owned()),
            Err(Trouble::Stopping) => Err(STOPPING.to_owned()),
            Err(Trouble::Silent(message)) => Err(message),
        };
        Check::new("socket", outcome)
    }

    async fn credentials(&self) -> Option<Check> {
        let cloud = self.cloud.as_ref()?;
        let todo = Failure::NoCredentials.todo();
        let provided = Deadline::after(PATIENCE).bound(cloud.provider.provide());
        let outcome = match provided.await {
            Ok(Ok(found)) => match refused(&cloud.standing.report()) {
                Some(refused) if !refused.is_of_region() => Err(refused.told("them")),
                _ => Ok(format!("from {}", found.origin)),
            },
            Ok(Err(error)) => Err(format!("{}; {todo}", chain(&error))),
            Err(_) => Err(format!(
                "their source has not answered within {} s; {todo}",
                PATIENCE.as_secs()
            )),
        };
        Some(Check::new("credentials", outcome))
    }

    async fn mounts(&self) -> Option<Check> {
        let node = self.node.as_ref().filter(|_| self.shared)?;
        let seen = Deadline::after(PATIENCE).bound(node.in_sight()).await;
        let outcome = match seen {
            Ok(Ok(())) => Ok("kubelet sees them".to_owned()),
            Ok(Err(message)) => Err(message),
            Err(_) => Err(slow("looking at the mount table", KERNEL)),
        };
        Some(Check::new("mounts", outcome))
    }

    async fn state(&self) -> Option<Check> {
        let node = self.node.as_ref()?;
        let todo = "without it nothing is known after a restart: look whether the disk is full or read-only, and whether the \
                    directory is mounted into the container";
        let kept = Deadline::after(PATIENCE).bound(node.keeps_records()).await;
        let outcome = match kept {
            Ok(Ok(())) => Ok("it can be written".to_owned()),
            Ok(Err(message)) => Err(format!("{message}; {todo}")),
            Err(_) => Err(slow("writing to it", todo)),
        };
        Some(Check::new("state", outcome))
    }

    async fn devices(&self) -> Option<Check> {
        let node = self.node.as_ref()?;
        let wrong = Deadline::after(PATIENCE).bound(node.storage_health()).await;
        let todo = KERNEL;
        let outcome = match wrong {
            Ok(None) => Ok("they can be listed".to_owned()),
            Ok(Some(message)) => Err(format!("{message}; {todo}")),
            Err(_) => Err(slow("listing them", todo)),
        };
        Some(Check::new("devices", outcome))
    }
}

const KERNEL: &str =
    "look at the kernel's log, and whether the container has the host's /sys and /dev";

fn slow(what: &str, todo: &str) -> String {
    format!(
        "{what} has taken {} s and goes on; {todo}",
        PATIENCE.as_secs()
    )
}

/// Whether the programs that a node runs are there.
fn tools() -> Result<String, String> {
    let missing = tools::missing(std::env::var_os("PATH").as_deref());
    match missing.as_slice() {
        [] => Ok("they are all there".to_owned()),
        missing => Err(format!(
            "not in PATH, and needed for volumes with a filesystem: {}; use the project's image, or install blkid, e2fsprogs, \
             xfsprogs and btrfs-progs",
            missing.join(", ")
        )),
    }
}

const STOPPING: &str = "the driver is shutting down";

/// Why a probe failed.
#[derive(Debug)]
enum Trouble {
    /// The driver answers that it ends.
    Stopping,
    /// Nothing is answered; how, and what to do.
    Silent(String),
}

/// Asks on the own socket whether the driver is ready.
async fn probe(endpoint: &Endpoint) -> Result<(), Trouble> {
    let silent = |why: String| {
        Trouble::Silent(format!(
            "{endpoint} does not answer: {why}; a driver that has just started needs a moment, else see its log"
        ))
    };
    let call = async {
        let channel = Channels::try_from(endpoint.to_string())?.connect().await?;
        let answer = IdentityClient::new(channel).probe(ProbeRequest {}).await;
        Ok::<_, tonic::transport::Error>(answer)
    };
    match Deadline::after(PATIENCE).bound(call).await {
        Ok(Ok(Ok(_))) => Ok(()),
        Ok(Ok(Err(status))) if crate::csi::failure(&status) == Some(Failure::ShuttingDown) => {
            Err(Trouble::Stopping)
        }
        Ok(Ok(Err(status))) => Err(silent(status.message().to_owned())),
        Ok(Err(error)) => Err(silent(chain(&error))),
        Err(_) => Err(silent(format!("not within {} s", PATIENCE.as_secs()))),
    }
}

/// What every call was refused for lately.
struct Refused<'a> {
    ago: Duration,
    error: &'a str,
    failure: Failure,
}

impl Refused<'_> {
    fn is_of_region(&self) -> bool {
        self.failure == Failure::WrongRegion
    }

    /// What was refused, and what to do.
    fn told(&self, what: &str) -> String {
        let (ago, error, todo) = (self.ago.as_secs(), self.error, self.failure.todo());
        format!("the cloud refused {what} {ago} s ago: {error}; {todo}")
    }
}

/// That credentials or region were refused lately; none when not.
fn refused(report: &Report) -> Option<Refused<'_>> {
    let (at, refusal) = report.refused.as_ref()?;
    let ago = Some(at.elapsed()).filter(|ago| *ago < LATELY)?;
    Some(Refused {
        ago,
        error: &refusal.error,
        failure: refusal.failure,
    })
}

/// When the cloud has answered last, or that it is out of reach or does not know the region, and what to do.
fn reached(report: &Report) -> Result<String, String> {
    if let Some(refused) = refused(report).filter(Refused::is_of_region) {
        return Err(refused.told("the region"));
    }
    if let Some(Silence {
        since, last, error, ..
    }) = &report.silent
        && last.elapsed() < LATELY
    {
        let (since, last) = (since.elapsed().as_secs(), last.elapsed().as_secs());
        let silence = format!("no answer for {since} s, tried last {last} s ago: {error}");
        return match Duration::from_secs(since - last.min(since)) < SILENT {
            true => Ok(silence),
            false => Err(format!("{silence}; {UNREACHED}")),
        };
    }
    Ok(match report.answered {
        Some(at) => format!("it answered last {} s ago", at.elapsed().as_secs()),
        None => "it has not been called yet".to_owned(),
    })
}

fn registered(registration: &Registration) -> Check {
    let outcome = match registration.stage() {
        Stage::Registered => Ok("kubelet has taken the driver up".to_owned()),
        Stage::Offered => Err(
            "kubelet has not taken the driver up yet; if that stays, check that kubelet runs and that \
             --registration-dir is its directory plugins_registry"
                .to_owned(),
        ),
        Stage::Refused(words) => Err(registration.refusal(&words)),
    };
    Check::new("registration", outcome)
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// The instant so many seconds ago.
    async fn ago(count: u64) -> Instant {
        let then = Instant::now();
        tokio::time::advance(seconds(count)).await;
        then
    }

    async fn silence(first: u64, last: u64) -> Report {
        let (since, last) = (ago(first - last).await, ago(last).await);
        let error = "no answer from http://h".to_owned();
        let silent = Some(Silence {
            since,
            last,
            error,
            is_logged: false,
        });
        Report {
            silent,
            ..Report::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_called_nothing_or_was_answered_long_ago_is_well() {
        assert!(reached(&Report::default()).is_ok());
        let idle = Report {
            answered: Some(ago(86_400).await),
            ..Report::default()
        };
        assert_eq!(reached(&idle).unwrap(), "it answered last 86400 s ago");
    }

    #[tokio::test(start_paused = true)]
    async fn one_lost_call_is_no_silence_and_a_minute_of_them_is_one_that_says_what_to_do() {
        assert!(reached(&silence(3, 3).await).is_ok());
        assert!(reached(&silence(400, 380).await).is_ok());
        let told = reached(&silence(75, 2).await).unwrap_err();
        for part in ["75 s", "http://h", "--ecs-endpoint"] {
            assert!(told.contains(part), "{told}");
        }
        // Nobody has tried since.
        assert!(reached(&silence(2000, 700).await).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_counts_for_ten_minutes_and_says_what_to_do() {
        for (code, todo) in [
            ("InvalidAccessKeyId.NotFound", "check the access key"),
            ("InvalidAccessKeyId.Inactive", "switch it on"),
            ("SignatureDoesNotMatch", "check the secret"),
            ("InvalidTimeStamp.Expired", "correct the clock"),
            ("InvalidRegionId.NotFound", "correct --region"),
            ("InvalidRegionId", "correct --region"),
        ] {
            let report = |at| Report {
                refused: Some((
                    at,
                    crate::cloud::standing::Refusal {
                        failure: crate::cloud::Error::answered("X", 403, code).failure(),
                        error: format!("DescribeDisks failed with {code}"),
                    },
                )),
                ..Report::default()
            };
            let lately = report(ago(599).await);
            let told = refused(&lately).unwrap().told("them");
            assert!(told.contains(code) && told.contains(todo), "{told}");
            let is_of_region = code.starts_with("InvalidRegion");
            assert_eq!(reached(&lately).is_err(), is_of_region, "{code}");
            assert!(refused(&report(ago(600).await)).is_none());
        }
    }
}
