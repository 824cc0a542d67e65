//! What to do about a step that takes long, and about an event of Kubernetes.

use crate::base::Phase;

/// The phase of a step; none for an action of the cloud.
pub(super) fn phase(step: &str) -> Option<Phase> {
    Phase::ALL.iter().copied().find(|phase| phase.as_str() == step)
}

/// For a step that has been running for long.
pub(super) fn for_step(step: &str) -> Option<&'static str> {
    Some(match phase(step)? {
        Phase::RateLimit => {
            "The cloud throttles this action, or a configured rate limit (`rateLimits`) delays it; the driver continues by \
             itself. If it takes long, raise the configured limit, or check the Quota Center for other programs that use the \
             API quota of the account."
        }
        Phase::AttachQueue => {
            "Another disk of the instance is being attached or detached. If this takes minutes, that disk is stuck: \
             `kubectl get volumeattachments` lists the volumes of the node."
        }
        Phase::Poll => "If this takes minutes, check the state of the disk and of the instance in the console.",
        Phase::DeviceWait => {
            "Check in the console that the disk is attached to the instance, and with `lsblk -o NAME,SERIAL` on the node \
             that its device is there."
        }
        Phase::ToolQueue => {
            "Filesystem tools of other volumes are running: full checks of large filesystems can take hours."
        }
        Phase::Unmount | Phase::Release => {
            "A process uses the volume, or the disk does not respond: see docs/guides/stuck-volume.md."
        }
        Phase::Fsck | Phase::Grow => {
            "A full check of a large filesystem can take hours: do not interrupt it. If the disk does not respond, calls fail \
             with DISK_HUNG."
        }
        Phase::BlankCheck | Phase::Mkfs | Phase::Mount => {
            "If this takes minutes, the disk probably does not respond: check it in the console, and the kernel log of the \
             node (docs/guides/stuck-volume.md#the-disk-does-not-respond)."
        }
    })
}

const OTHER_ZONE: &str = "The pod can run only in the zone of its disk. Add a node there, or check the node selector and \
                          the other volumes of the pod.";

/// Parts of messages of kube-scheduler, and what they mean for a volume.
const SCHEDULING: [(&str, &str); 6] = [
    (
        "did not have enough free storage",
        "The cloud has no disk for this class in the zones of these nodes: it is out of stock, or the class allows other \
         zones. Add categories to `type` of the StorageClass, compare its `zoneId` with the zones of the nodes, or wait \
         (docs/guides/capacity.md).",
    ),
    (
        "exceed max volume count",
        "The nodes have reached their limits of attached disks. Add a node, or move pods with volumes \
         (docs/guides/capacity.md).",
    ),
    ("didn't match PersistentVolume's node affinity", OTHER_ZONE),
    ("volume node affinity conflict", OTHER_ZONE),
    (
        "didn't find available persistent volumes to bind",
        "`allowedTopologies` of the StorageClass excludes the zones of these nodes.",
    ),
    (
        "unbound immediate PersistentVolumeClaims",
        "A claim of the pod has no volume yet: run this command for each of its claims.",
    ),
];

pub(super) fn for_event(reason: &str, message: &str) -> Option<&'static str> {
    if reason == "FailedScheduling" {
        let mut known = SCHEDULING.iter();
        return known
            .find(|(part, _)| message.contains(part))
            .map(|(_, advice)| *advice);
    }
    match reason {
        "ExternalProvisioning" => Some(
            "No controller has recorded a call for it: check the log of the csi-provisioner of the leader \
             (docs/guides/troubleshoot.md#where-to-find-the-message), and `provisioner` of the StorageClass.",
        ),
        "WaitForFirstConsumer" => Some("The volume is created when a pod uses the claim."),
        "WaitForPodScheduled" => Some("`kubectl describe pod` shows why the pod is not scheduled."),
        _ => None,
    }
}
