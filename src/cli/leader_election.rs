//! Flags of leader election, named as those of the sidecars.

use std::time::Duration;

use clap::Args;

use super::parse::{duration, object_name};

#[derive(Debug, Args)]
pub struct LeaderElectionArgs {
    /// Serve only while this replica holds the Lease of the driver, so that one of several replicas is active. The
    /// sidecars must not use leader election.
    #[arg(long, env = "DISKPLUGIN_LEADER_ELECTION", requires = "leader_election_identity")]
    pub leader_election: bool,

    /// Name of this replica in the Lease, which no other replica has.
    #[arg(long, env = "POD_NAME")]
    pub leader_election_identity: Option<String>,

    /// Namespace of the Lease. Default: that of the controller's ServiceAccount or of the kubeconfig's context.
    #[arg(long, env = "POD_NAMESPACE", value_parser = object_name)]
    pub leader_election_namespace: Option<String>,

    /// How long another replica waits for a leader that does not renew the Lease, in whole seconds.
    #[arg(long, env = "DISKPLUGIN_LEADER_ELECTION_LEASE_DURATION", default_value = "15s", value_parser = duration)]
    pub leader_election_lease_duration: Duration,

    /// How long the leader remains active if it cannot renew the Lease. Shorter than the lease duration.
    #[arg(long, env = "DISKPLUGIN_LEADER_ELECTION_RENEW_DEADLINE", default_value = "10s", value_parser = duration)]
    pub leader_election_renew_deadline: Duration,

    /// Time between two attempts to take or renew the Lease. Shorter than the renew deadline.
    #[arg(long, env = "DISKPLUGIN_LEADER_ELECTION_RETRY_PERIOD", default_value = "2s", value_parser = duration)]
    pub leader_election_retry_period: Duration,

    /// While this replica is a standby, serve the socket with the Identity service only, which reports that the driver
    /// is not ready. Sidecars wait for such a driver; without a socket, they exit after 30 seconds and are restarted
    /// with growing pauses. Default: a standby has no socket.
    #[arg(long, env = "DISKPLUGIN_STANDBY_SOCKET", requires = "leader_election")]
    pub standby_socket: bool,
}

impl LeaderElectionArgs {
    /// Checks that the times leave no time with two leaders.
    ///
    /// # Errors
    /// The wrong flag, and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        let whole_seconds = self.leader_election_lease_duration.subsec_nanos() == 0;
        if !whole_seconds || self.leader_election_lease_duration.is_zero() {
            return Err("--leader-election-lease-duration: allowed: whole seconds, such as 15s".to_owned());
        }
        let (deadline, retry) = (self.leader_election_renew_deadline, self.leader_election_retry_period);
        if deadline >= self.leader_election_lease_duration {
            return Err(
                "--leader-election-renew-deadline must be shorter than --leader-election-lease-duration: otherwise two \
                 replicas could be active"
                    .to_owned(),
            );
        }
        if retry.is_zero() || retry >= deadline {
            return Err(
                "--leader-election-retry-period must be longer than 0s and shorter than --leader-election-renew-deadline"
                    .to_owned(),
            );
        }
        Ok(())
    }
}
