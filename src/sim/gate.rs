//! The way of a call through the world: counted, perhaps denied, perhaps struck by a fault, served.

use std::time::Duration;

use jiff::Timestamp;

use super::action::Action;
use super::fault::Strike;
use super::log::{Entry, Outcome, Via};
use super::params::Params;
use super::reply::{Answer, Listing, Mangle, Refusal, Reply};
use super::world::World;

/// A call that has come in.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) action: Action,
    pub(crate) params: Params,
    pub(crate) via: Via,
    pub(crate) nonce: Option<String>,
}

/// A call that has been let in, or not.
#[derive(Debug)]
pub(crate) struct Admission {
    /// How long it takes before it has an effect.
    pub(crate) delay: Duration,
    seq: u64,
    request_id: String,
    strike: Strike,
    early: Option<Reply>,
    /// The latency after the effect.
    latency: Duration,
}

/// A call that has been decided.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) reply: Reply,
    /// How the answer is spoilt.
    pub(crate) mangle: Option<Mangle>,
    /// How long the answer takes.
    pub(crate) delay: Duration,
    /// How long the answer then takes to come, bit by bit.
    pub(crate) drip: Duration,
    pub(crate) request_id: String,
}

impl World {
    /// Lets a call in: everything that happens before its action runs.
    pub(crate) fn admit(&mut self, now: Timestamp, call: &Call) -> Admission {
        self.advance(now);
        let request_id = self.rng.request_id();
        let seq = self.open_log(call.action.as_str(), call, &request_id);
        let region = self.region.clone();
        let limits = &self.config.throttle;
        let throttled = self
            .throttle
            .admit(limits, &region, call.action, self.now)
            .err();
        let name = call.action.as_str();
        let denied = self.config.denied.iter().any(|d| d == name || d == "*");
        let strike = match &throttled {
            Some(_) => Strike::default(),
            None => {
                let rng = &mut self.rng;
                let faults = &self.config.faults;
                self.faults.strike(faults, call.action, self.now, rng)
            }
        };
        let early = match throttled {
            Some(refusal) => Some(Err(refusal)),
            None if denied => Some(denial(call.action)),
            None if strike.no_rows && call.action.is_list() => Some(Ok(no_rows(call.action))),
            None => strike.refusal.clone().map(Err),
        };
        let (before, latency) = self.config.latency.draw(call.action, &mut self.rng);
        Admission {
            latency,
            delay: before + strike.delay_before,
            seq,
            request_id,
            strike,
            early,
        }
    }

    /// Serves a call that was let in.
    pub(crate) fn serve(&mut self, now: Timestamp, call: &Call, admission: Admission) -> Served {
        self.advance(now);
        let strike = admission.strike;
        let mut mangle = strike.mangle_before;
        let mut made = None;
        let mut reply = match admission.early {
            Some(reply) => reply,
            None if mangle.is_some() => Err(Refusal::new(500, "InternalError")),
            None => {
                mangle = strike.mangle;
                self.tokens.repeated = false;
                let reply = self.act(call, strike.fails_later);
                let params = &call.params;
                let name = params.get("DiskName").or(params.get("SnapshotName"));
                made = self.note_made(call.action.as_str(), name, &reply);
                match strike.refusal_after {
                    Some(refusal) => Err(refusal),
                    None => reply,
                }
            }
        };
        if strike.speechless {
            reply = reply.map_err(Refusal::speechless);
        }
        let refusal = reply.as_ref().err();
        let refusal = refusal.map(|refusal| (refusal.status, refusal.code.as_str()));
        let outcome = Outcome {
            refusal,
            spoilt: mangle.is_some(),
            made,
        };
        self.log.close(admission.seq, outcome);
        Served {
            reply,
            mangle,
            delay: admission.latency + strike.delay_after,
            drip: strike.drip,
            request_id: admission.request_id,
        }
    }

    fn act(&mut self, call: &Call, fails_later: bool) -> Reply {
        let params = &call.params;
        match call.action {
            Action::CreateDisk => self.create_disk(params, fails_later),
            Action::DeleteDisk => self.delete_disk(params),
            Action::AttachDisk => self.attach_disk(params, fails_later),
            Action::DetachDisk => self.detach_disk(params, fails_later),
            Action::DescribeDisks => self.describe_disks(params),
            Action::ResizeDisk => self.resize_disk(params),
            Action::ModifyDiskSpec => self.modify_disk_spec(params, fails_later),
            Action::ModifyDiskAttribute => self.modify_disk_attribute(params),
            Action::DescribeTasks => self.describe_tasks(params),
            Action::DescribeDisksFullStatus => self.describe_health(params),
            Action::CreateSnapshot => self.create_snapshot(params, fails_later),
            Action::DeleteSnapshot => self.delete_snapshot(params),
            Action::DescribeSnapshots => self.describe_snapshots(params),
            Action::CreateSnapshotGroup => self.create_snapshot_group(params, fails_later),
            Action::DeleteSnapshotGroup => self.delete_snapshot_group(params),
            Action::DescribeSnapshotGroups => self.describe_snapshot_groups(params),
            Action::TagResources => self.tag_resources(params),
            Action::UntagResources => self.untag_resources(params),
            Action::ListTagResources => self.list_tag_resources(params),
            Action::DescribeInstances => self.describe_instances(params),
            Action::DescribeInstanceTypes => self.describe_instance_types(params),
            Action::DescribeAvailableResource => self.describe_stock(params),
            Action::DescribeRegions => self.describe_regions(),
        }
    }

    fn open_log(&mut self, action: &str, call: &Call, request_id: &str) -> u64 {
        let entry = Entry {
            seq: 0,
            at: self.now,
            action: action.to_owned(),
            params: call.params.map().clone(),
            via: call.via,
            nonce: call.nonce.clone(),
            status: None,
            code: None,
            spoilt: false,
            made: None,
            request_id: request_id.to_owned(),
        };
        self.log.open(entry, self.config.rules.log_length)
    }

    /// Notes a call that the gateway turned away before it became one of a known action.
    pub(crate) fn turn_away(
        &mut self,
        now: Timestamp,
        action: &str,
        via: Via,
        nonce: Option<String>,
        refusal: &Refusal,
    ) -> String {
        self.advance(now);
        let request_id = self.rng.request_id();
        let entry = Entry {
            seq: 0,
            at: self.now,
            action: action.to_owned(),
            params: std::collections::BTreeMap::new(),
            via,
            nonce,
            status: None,
            code: None,
            spoilt: false,
            made: None,
            request_id: request_id.clone(),
        };
        let seq = self.log.open(entry, self.config.rules.log_length);
        let outcome = Outcome {
            refusal: Some((refusal.status, &refusal.code)),
            ..Outcome::default()
        };
        self.log.close(seq, outcome);
        request_id
    }
}

/// Without permission a write is refused, while a list is empty (RAM, resource-level authorisation).
fn denial(action: Action) -> Reply {
    if !action.is_list() {
        return Err(Refusal::new(403, "Forbidden.RAM")
            .because("User not authorized to operate on the specified resource."));
    }
    Ok(no_rows(action))
}

fn no_rows(action: Action) -> Answer {
    match action {
        Action::DescribeSnapshots => Answer::Snapshots(Listing::empty()),
        Action::DescribeSnapshotGroups => Answer::Groups(Listing::empty()),
        Action::DescribeInstances => Answer::Instances(Listing::empty()),
        Action::DescribeInstanceTypes => Answer::Types(Vec::new()),
        Action::DescribeAvailableResource => Answer::Stock(Vec::new()),
        Action::DescribeRegions => Answer::Regions(Vec::new()),
        Action::DescribeTasks => Answer::Tasks(Listing::empty()),
        Action::DescribeDisksFullStatus => Answer::Health(Listing::empty()),
        Action::ListTagResources => Answer::Tagged(Listing::empty()),
        _ => Answer::Disks(Listing::empty()),
    }
}
