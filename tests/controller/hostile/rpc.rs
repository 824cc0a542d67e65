//! The RPCs of the controller, called by name with a message that was built by reflection.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use crate::common::memory_cloud::client;
use diskplugin::base::Tasks;
use diskplugin::csi::controller::{DriverLocation, Service};
use diskplugin::csi::proto::controller_server::Controller;
use diskplugin::csi::proto::group_controller_server::GroupController;
use diskplugin::disk::DiskServices;
use fake_ecs::{Cloud, Options, TokioClock};
use jiff::Timestamp;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor};
use tonic::{Request, Status};

/// The compiled proto.
pub(crate) static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    protox::Compiler::new([proto])
        .expect("proto/ is there")
        .include_imports(true)
        .open_file("csi.proto")
        .expect("csi.proto compiles")
        .descriptor_pool()
});

/// A cloud and the controller over it.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) cloud: Cloud,
    pub(crate) service: Service,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) answer: Result<DynamicMessage, Status>,
    /// What the cloud was asked.
    pub(crate) calls: Vec<String>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let nodes = "--nodes=i-one=cn-beijing-a,i-two=cn-beijing-a";
        let clock = TokioClock::starting_at(Timestamp::from_second(1_800_000_000).unwrap());
        let cloud = Cloud::in_memory(&Options::from_flags([nodes]).unwrap(), Arc::new(clock));
        let tasks = Tasks::default();
        let ecs = Arc::new(client(&cloud));
        let disks = DiskServices::new(ecs, "test".parse().unwrap(), &tasks);
        let location = DriverLocation {
            region: "cn-beijing".parse().unwrap(),
            zone: Some("cn-beijing-a".parse().unwrap()),
        };
        let service = Service::new(Arc::new(disks), location, tasks);
        Self { cloud, service }
    }

    /// Calls the RPC of this name.
    pub(crate) async fn call(&self, name: &str, message: &DynamicMessage) -> Outcome {
        self.cloud.clear_calls();
        let answer = dispatch(self, name, message).await;
        let calls = self.cloud.calls().into_iter().map(|call| call.action);
        Outcome {
            answer,
            calls: calls.collect(),
        }
    }
}

macro_rules! rpcs {
    ($($service:literal $trait:ident by $field:ident { $($name:literal $method:ident;)* })*) => {
        /// The RPCs that are called here, by service.
        pub(crate) const CALLED: &[(&str, &[&str])] = &[$(($service, &[$($name),*])),*];

        async fn dispatch(
            stage: &Stage,
            name: &str,
            message: &DynamicMessage,
        ) -> Result<DynamicMessage, Status> {
            match name {
                $($($name => {
                    let request = message.transcode_to().expect("the types are one");
                    let answer = $trait::$method(&stage.$field, Request::new(request)).await?;
                    let mut told = DynamicMessage::new(method(name).output());
                    told.transcode_from(&answer.into_inner()).expect("the types are one");
                    Ok(told)
                })*)*
                _ => panic!("{name} is not called"),
            }
        }
    };
}

rpcs! {
    "Controller" Controller by service {
        "CreateVolume" create_volume;
        "DeleteVolume" delete_volume;
        "ControllerPublishVolume" controller_publish_volume;
        "ControllerUnpublishVolume" controller_unpublish_volume;
        "ValidateVolumeCapabilities" validate_volume_capabilities;
        "ListVolumes" list_volumes;
        "ControllerListVolumeHealth" controller_list_volume_health;
        "ControllerGetVolumeHealth" controller_get_volume_health;
        "GetCapacity" get_capacity;
        "ControllerGetCapabilities" controller_get_capabilities;
        "CreateSnapshot" create_snapshot;
        "DeleteSnapshot" delete_snapshot;
        "ListSnapshots" list_snapshots;
        "GetSnapshot" get_snapshot;
        "ControllerExpandVolume" controller_expand_volume;
        "ControllerGetVolume" controller_get_volume;
        "ControllerModifyVolume" controller_modify_volume;
    }
    "GroupController" GroupController by service {
        "GroupControllerGetCapabilities" group_controller_get_capabilities;
        "CreateVolumeGroupSnapshot" create_volume_group_snapshot;
        "DeleteVolumeGroupSnapshot" delete_volume_group_snapshot;
        "GetVolumeGroupSnapshot" get_volume_group_snapshot;
    }
}

/// The RPC of this name.
pub(crate) fn method(name: &str) -> MethodDescriptor {
    let mut methods = POOL
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>());
    methods.find(|method| method.name() == name).expect("an RPC")
}

pub(crate) fn request(name: &str) -> MessageDescriptor {
    method(name).input()
}

#[test]
fn every_rpc_of_the_controllers_is_called() {
    for (service, called) in CALLED {
        let service = POOL.get_service_by_name(&format!("csi.v1.{service}")).unwrap();
        let names: Vec<String> = service.methods().map(|m| m.name().to_owned()).collect();
        assert_eq!(names, *called);
    }
}
