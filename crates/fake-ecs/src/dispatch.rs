//! Processing of a call: throttling, permissions, injected faults, the action itself, the log.

use std::time::Duration;

use jiff::Timestamp;

use super::action::Action;
use super::advance::advance;
use super::api_error::ApiError;
use super::attach;
use super::audit::CreatedResources;
use super::call::ApiCall;
use super::create;
use super::create_group;
use super::create_snapshot;
use super::delete;
use super::delete_group;
use super::delete_snapshot;
use super::describe;
use super::describe_groups;
use super::describe_health;
use super::describe_stock;
use super::describe_tasks;
use super::detach;
use super::fault::InjectedFaults;
use super::fault::ResponseFault;
use super::hidden;
use super::log::{Entry, Outcome, Via};
use super::modify;
use super::params::Params;
use super::resize;
use super::response::{ApiResponse, ApiResult, Listing};
use super::tag_resources;
use super::world::World;

/// A call before it takes effect.
#[derive(Debug)]
pub(crate) struct Admission {
    /// The delay before the call takes effect.
    pub(crate) delay: Duration,
    seq: u64,
    request_id: String,
    injected: InjectedFaults,
    early: Option<ApiResult>,
    /// The latency after the effect.
    latency: Duration,
}

#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) reply: ApiResult,
    /// How the response is corrupted.
    pub(crate) response_fault: Option<ResponseFault>,
    /// The delay of the response.
    pub(crate) delay: Duration,
    /// The duration over which the response body is sent.
    pub(crate) drip: Duration,
    pub(crate) request_id: String,
}

/// Performs the steps before the action: log entry, throttling, permissions, faults.
pub(crate) fn admit(world: &mut World, now: Timestamp, call: &ApiCall) -> Admission {
    advance(world, now);
    let request_id = world.rng.request_id();
    let name = call.action.as_str();
    let entry = Entry {
        params: call.params.map().clone(),
        ..Entry::arrived(world.now, name, call.via, call.nonce.clone(), &request_id)
    };
    let seq = world.log.open(entry, world.config.rules.log_length);
    let region = world.region.clone();
    let limits = &world.config.throttle;
    let throttled = world.throttle.admit(limits, &region, call.action, world.now).err();
    let denied = world.config.denied.iter().any(|d| d == name || d == "*");
    let injected = match &throttled {
        Some(_) => InjectedFaults::default(),
        None => {
            let rng = &mut world.rng;
            let faults = &world.config.faults;
            world.faults.inject(faults, call.action, world.now, rng)
        }
    };
    let early = match throttled {
        Some(error) => Some(Err(error)),
        None if denied => Some(denial(call)),
        None if injected.no_rows && call.action.is_list() => Some(Ok(no_rows(call.action))),
        None => injected.error.clone().map(Err),
    };
    let (before, latency) = world.config.latency.draw(call.action, &mut world.rng);
    Admission {
        latency,
        delay: before + injected.delay_before,
        seq,
        request_id,
        injected,
        early,
    }
}

/// Runs the action of an admitted call.
pub(crate) fn serve(world: &mut World, now: Timestamp, call: &ApiCall, admission: Admission) -> CallResult {
    advance(world, now);
    let injected = admission.injected;
    let mut response_fault = injected.fault_before;
    let mut created = None;
    let mut reply = match admission.early {
        Some(reply) => reply,
        None if response_fault.is_some() => Err(ApiError::new(500, "InternalError")),
        None => {
            response_fault = injected.response_fault;
            world.tokens.repeated = false;
            let reply = match hidden::not_found(world, call) {
                Some(error) => Err(error),
                None => act(world, call, injected.fails_later),
            };
            advance(world, now);
            hidden::record_created(world, &reply);
            let reply = hidden::filter(world, reply);
            let params = &call.params;
            let name = params.get("DiskName").or(params.get("SnapshotName"));
            created = tally_created(world, call.action.as_str(), name, &reply);
            match injected.error_after {
                Some(error) => Err(error),
                None => reply,
            }
        }
    };
    if injected.without_message {
        reply = reply.map_err(ApiError::without_message);
    }
    let error = reply.as_ref().err();
    let error = error.map(|error| (error.status, error.code.as_str()));
    let outcome = Outcome {
        error,
        faulted: response_fault.is_some(),
        created,
    };
    world.log.close(admission.seq, outcome);
    CallResult {
        reply,
        response_fault,
        delay: admission.latency + injected.delay_after,
        drip: injected.drip,
        request_id: admission.request_id,
    }
}

fn act(world: &mut World, call: &ApiCall, fails_later: bool) -> ApiResult {
    let params = &call.params;
    match call.action {
        Action::CreateDisk => create::create_disk(world, params, fails_later),
        Action::DeleteDisk => delete::delete_disk(world, params),
        Action::AttachDisk => attach::attach_disk(world, params, fails_later),
        Action::DetachDisk => detach::detach_disk(world, params, fails_later),
        Action::DescribeDisks => describe::describe_disks(world, params),
        Action::ResizeDisk => resize::resize_disk(world, params),
        Action::ModifyDiskSpec => modify::modify_disk_spec(world, params, fails_later),
        Action::ModifyDiskAttribute => modify::modify_disk_attribute(world, params),
        Action::DescribeTasks => describe_tasks::describe_tasks(world, params),
        Action::DescribeDisksFullStatus => describe_health::describe_health(world, params),
        Action::CreateSnapshot => create_snapshot::create_snapshot(world, params, fails_later),
        Action::DeleteSnapshot => delete_snapshot::delete_snapshot(world, params),
        Action::DescribeSnapshots => describe::describe_snapshots(world, params),
        Action::CreateSnapshotGroup => create_group::create_snapshot_group(world, params, fails_later),
        Action::DeleteSnapshotGroup => delete_group::delete_snapshot_group(world, params),
        Action::DescribeSnapshotGroups => describe_groups::describe_snapshot_groups(world, params),
        Action::TagResources => tag_resources::tag_resources(world, params),
        Action::UntagResources => tag_resources::untag_resources(world, params),
        Action::ListTagResources => tag_resources::list_tag_resources(world, params),
        Action::DescribeInstances => describe::describe_instances(world, params),
        Action::DescribeInstanceTypes => describe::describe_instance_types(world, params),
        Action::DescribeAvailableResource => describe_stock::describe_stock(world, params),
        Action::DescribeRegions => describe::describe_regions(world),
    }
}

/// Records the resource that a call created, including calls whose response will be lost. Returns
/// the ID of a new resource; none for a repeated call, which returns the existing one.
fn tally_created(world: &mut World, action: &str, name: Option<&str>, reply: &ApiResult) -> Option<String> {
    let (Ok(ApiResponse::Disk(id)) | Ok(ApiResponse::Snapshot(id))) = reply else {
        return None;
    };
    if world.tokens.repeated {
        return None;
    }
    if let Some(name) = name {
        let (action, name) = (action.to_owned(), name.to_owned());
        let created = world.log.tally.created.entry((action.clone(), name.clone()));
        let created = created.or_insert_with(|| CreatedResources {
            action,
            name,
            ids: Vec::new(),
            max_concurrent: 0,
        });
        created.ids.push(id.clone());
        let exists = |id: &&String| world.disks.get(id).is_some() || world.snapshots.get(id).is_some();
        let max_concurrent = created.ids.iter().filter(exists).count();
        created.max_concurrent = created.max_concurrent.max(max_concurrent);
    }
    Some(id.clone())
}

/// Logs a call that is complete, without its token, and returns its request ID.
pub(crate) fn log_call(
    world: &mut World,
    now: Timestamp,
    action: &str,
    (via, nonce): (Via, Option<String>),
    params: &Params,
    error: Option<&ApiError>,
) -> String {
    advance(world, now);
    let request_id = world.rng.request_id();
    let mut entry = Entry {
        params: params.map().clone(),
        ..Entry::arrived(world.now, action, via, nonce, &request_id)
    };
    entry.params.remove("OIDCToken");
    let seq = world.log.open(entry, world.config.rules.log_length);
    let outcome = Outcome {
        error: error.map(|error| (error.status, error.code.as_str())),
        ..Outcome::default()
    };
    world.log.close(seq, outcome);
    request_id
}

/// The result without permission: an error for a write and for a dry run, no rows for a list (RAM, resource-level
/// authorization).
fn denial(call: &ApiCall) -> ApiResult {
    let action = call.action;
    if !action.is_list() || call.params.flag("DryRun").unwrap_or(false) {
        return Err(ApiError::new(403, "Forbidden.RAM")
            .with_message("User not authorized to operate on the specified resource."));
    }
    Ok(no_rows(action))
}

fn no_rows(action: Action) -> ApiResponse {
    match action {
        Action::DescribeSnapshots => ApiResponse::Snapshots(Listing::empty()),
        Action::DescribeSnapshotGroups => ApiResponse::Groups(Listing::empty()),
        Action::DescribeInstances => ApiResponse::Instances(Listing::empty()),
        Action::DescribeInstanceTypes => ApiResponse::Types(Vec::new()),
        Action::DescribeAvailableResource => ApiResponse::Stock(Vec::new()),
        Action::DescribeRegions => ApiResponse::Regions(Vec::new()),
        Action::DescribeTasks => ApiResponse::Tasks(Listing::empty()),
        Action::DescribeDisksFullStatus => ApiResponse::Health(Listing::empty()),
        Action::ListTagResources => ApiResponse::Tagged(Listing::empty()),
        _ => ApiResponse::Disks(Listing::empty()),
    }
}
