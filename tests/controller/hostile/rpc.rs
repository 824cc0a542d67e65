//! The RPCs of the controller, called by name with a message that was built by reflection.

use std::path::Path;
use std::sync::LazyLock;

use diskplugin::csi::proto::controller_server::Controller;
use diskplugin::csi::proto::group_controller_server::GroupController;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor};
use tonic::{Request, Status};

use crate::service::kit::Stage;

/// The compiled proto.
pub(crate) static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    protox::Compiler::new([proto])
        .expect("proto/ exists")
        .include_imports(true)
        .open_file("csi.proto")
        .expect("csi.proto compiles")
        .descriptor_pool()
});

/// The response to a call, and the calls of the cloud.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) response: Result<DynamicMessage, Status>,
    pub(crate) calls: Vec<String>,
}

/// A new process on a cloud of its own.
pub(crate) fn new_stage() -> Stage {
    Stage::new(&[]).restarted()
}

/// Calls the RPC of this name.
pub(crate) async fn call(stage: &Stage, name: &str, message: &DynamicMessage) -> Outcome {
    stage.cloud.clear_calls();
    let response = dispatch(stage, name, message).await;
    let calls = stage.cloud.calls().into_iter().map(|call| call.action).collect();
    Outcome { response, calls }
}

macro_rules! rpcs {
    ($($service:literal $trait:ident { $($name:literal $method:ident;)* })*) => {
        /// The RPCs that are called here, by service.
        pub(crate) const CALLED: &[(&str, &[&str])] = &[$(($service, &[$($name),*])),*];

        async fn dispatch(
            stage: &Stage,
            name: &str,
            message: &DynamicMessage,
        ) -> Result<DynamicMessage, Status> {
            match name {
                $($($name => {
                    let request = message.transcode_to().expect("the types are equal");
                    let response = $trait::$method(&stage.service, Request::new(request)).await?;
                    let mut dynamic = DynamicMessage::new(method(name).output());
                    dynamic.transcode_from(&response.into_inner()).expect("the types are equal");
                    Ok(dynamic)
                })*)*
                _ => panic!("{name} is not called"),
            }
        }
    };
}

rpcs! {
    "Controller" Controller {
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
    "GroupController" GroupController {
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
