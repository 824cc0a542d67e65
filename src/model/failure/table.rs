//! The table of failures.

use ecs::Condition;

use super::kind::FailureKind;

/// Each row: variant, stable name, kind, the conditions of the cloud that it reports, description, advice.
macro_rules! failures {
    ($($variant:ident $name:literal $kind:ident $([$($condition:ident)+])? $description:literal, $advice:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Failure {
            $(#[doc = $description] $variant,)*
        }

        impl Failure {
            /// In the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            pub fn kind(self) -> FailureKind {
                match self { $(Self::$variant => FailureKind::$kind,)* }
            }

            pub fn description(self) -> &'static str {
                match self { $(Self::$variant => $description,)* }
            }

            pub fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice,)* }
            }
        }

        impl From<Condition> for Failure {
            fn from(condition: Condition) -> Self {
                match condition { $($($(Condition::$condition)|+ => Self::$variant,)?)* }
            }
        }
    };
}

failures! {
    // Not found.
    NoSuchDisk "NO_SUCH_DISK" NotFound [NoSuchDisk]
        "the disk does not exist in this region, or the account has no access to it",
        "check --region, the account of the access key, and whether the disk was deleted manually";
    NoSuchSnapshot "NO_SUCH_SNAPSHOT" NotFound [NoSuchSnapshot]
        "the snapshot does not exist in this region, or the account has no access to it",
        "check --region, the account of the access key, and whether the snapshot was deleted or has expired";
    NoSuchNode "NO_SUCH_NODE" NotFound [NoSuchNode]
        "the instance does not exist in this region",
        "check that the node is an instance of this region, and whether it was released";
    NoSuchGroup "NO_SUCH_GROUP" NotFound [NoSuchGroup]
        "the snapshot group does not exist in this region, or the account has no access to it",
        "check --region, the account of the access key, and whether the group was deleted manually";
    NoSuchResource "NO_SUCH_RESOURCE" NotFound [NotFound AlreadyDetached]
        "a resource or path that the request names does not exist",
        "check the ID and the path in the message";

    // Ownership and location.
    NotOwned "NOT_OWNED" FailedPrecondition
        "the disk or snapshot was not created by this cluster's driver, so it is never deleted",
        "delete the resource in the console if it is unused, or tag it with the ID of this cluster";
    NameConflict "NAME_CONFLICT" AlreadyExists
        "a disk or snapshot with this name exists and differs from the request",
        "delete the existing disk or snapshot if it is unused, or delete the claim and create another one";
    DiskInUseElsewhere "DISK_IN_USE_ELSEWHERE" FailedPrecondition
        "the disk is attached to another node, and the driver never detaches it from there",
        "wait until it is unpublished there; delete the pod that uses it, or fence the node if it has failed";
    DiskStillAttached "DISK_STILL_ATTACHED" FailedPrecondition [DiskStillAttached]
        "the disk is attached, so it is not deleted",
        "delete the pod that uses the volume; delete the VolumeAttachment only if no pod uses the volume";
    AttachModeConflict "ATTACH_MODE_CONFLICT" AlreadyExists
        "the disk is already attached to this node, but read-only instead of writable or vice versa",
        "unpublish the volume from this node first";
    TooManyAttachments "TOO_MANY_ATTACHMENTS" ResourceExhausted [TooManyAttachments]
        "the multi-attach disk is attached to the maximum number of instances",
        "unpublish it from a node that no longer needs it";

    // Exhausted.
    OutOfStock "OUT_OF_STOCK" ResourceExhausted [OutOfStock ZoneClosed IncompatibleOptions]
        "no category is in stock in any zone that the request allows",
        "add categories to `type` or zones to `zoneId` of the StorageClass, or wait until there is stock";
    QuotaReached "QUOTA_REACHED" ResourceExhausted [Quota AccountQuota TooManyGroupDisks GroupTooLarge]
        "a quota of the account is exhausted",
        "raise the quota in the Quota Center, or delete unused resources";
    AttachLimitExceeded "ATTACH_LIMIT_EXCEEDED" ResourceExhausted [AttachLimitExceeded]
        "the instance has reached its limit of attached disks",
        "schedule the pod on another node, or detach a disk; check that CSINode reports the node's true limit";
    NoSuitableZone "NO_SUITABLE_ZONE" ResourceExhausted
        "no zone satisfies StorageClass, topology and node together",
        "compare `zoneId` of the StorageClass with the zones of the nodes";
    OutOfRange "OUT_OF_RANGE" OutOfRange [OutOfRange NotLarger SizeUnavailable PerformanceOutOfRange]
        "the size, performance level or IOPS value is not available",
        "request another size or level, or use another category";

    // Preconditions.
    InvalidState "INVALID_STATE" FailedPrecondition
        [Precondition CategoryDenied CategoryUnsupported SharedDisk MixedCategories LocalDisk NotBootable ForceUnsupported]
        "the state or kind of the disk, snapshot or node does not allow the operation",
        "the caller retries automatically; if the error persists, resolve the condition that the cloud's error code documents";
    AccountInArrears "ACCOUNT_IN_ARREARS" FailedPrecondition [AccountInArrears]
        "the account or the resource has an overdue payment",
        "pay the amount due, or add balance to the account";
    KmsKeyUnusable "KMS_KEY_UNUSABLE" FailedPrecondition [KmsKeyUnusable]
        "the key is missing, disabled, asymmetric, or not granted to the disk service",
        "check `kmsKeyId` of the StorageClass, the key's state in KMS, and the role AliyunECSDiskEncryptDefaultRole";
    NotInSameZone "NOT_IN_SAME_ZONE" FailedPrecondition [ForceInSameZone NotInSameZone]
        "disk and node are in different zones",
        "schedule the pod on a node in the disk's zone; check the node affinity of the volume";
    InstanceTypeIncompatible "INSTANCE_TYPE_INCOMPATIBLE" FailedPrecondition [InstanceTypeIncompatible]
        "the node's instance type does not support this kind of disk",
        "schedule the pod on an instance type that supports the category, or choose another `type` in the StorageClass";
    NodeNeedsRestart "NODE_NEEDS_RESTART" FailedPrecondition [NodeNeedsRestart]
        "a change of the instance takes effect only after a restart",
        "restart the instance in the console";
    NodeLocked "NODE_LOCKED" FailedPrecondition [NodeLocked]
        "the instance is locked for security reasons",
        "unlock the instance in the console";
    DiskNotPortable "DISK_NOT_PORTABLE" FailedPrecondition
        [SubscriptionDisk DeleteWithInstanceRequired AttachedElsewhereBefore SystemDisk]
        "the disk is a subscription disk, a system disk or bound to its instance",
        "convert a subscription disk to pay-as-you-go in the console; run the pod of an elastic ephemeral disk on the node that first used the volume";
    DeletedWithInstance "DELETED_WITH_INSTANCE" FailedPrecondition
        "the disk would be deleted with the instance that it is attached to, and the driver may not change that",
        "allow ecs:ModifyDiskAttribute (deploy/ram-policies), or disable the release of the disk with its instance in the console";
    SystemDisk "SYSTEM_DISK" FailedPrecondition
        "the disk is the system disk of an instance, and only data disks can be volumes",
        "create a snapshot of the disk and restore it to a volume";
    WriterConflict "WRITER_CONFLICT" FailedPrecondition
        "another node may write to the shared disk, but the access mode allows a single writer, or only readers",
        "unpublish it from the other node or, for a block volume, publish it read-only";
    CoolingPeriod "COOLING_PERIOD" FailedPrecondition [CoolingPeriod]
        "the disk was modified recently, and the cloud requires an interval between modifications",
        "the caller retries automatically; if the error persists, check whether something else modifies the disk";
    OfflineExpansionOnly "OFFLINE_EXPANSION_ONLY" FailedPrecondition [OfflineExpansionOnly]
        "this disk or instance supports expansion only while the disk is detached",
        "stop the pod that uses the volume; the expansion then continues";
    NeverAttached "NEVER_ATTACHED" FailedPrecondition [NeverAttached]
        "the disk was never attached, and the cloud creates snapshots only of disks that were",
        "start a pod that uses the volume, then retry";
    SnapshotUnsupported "SNAPSHOT_UNSUPPORTED" FailedPrecondition [NotSnapshottable CategoryNotSnapshottable]
        "the disk's category does not support snapshots",
        "back up the data inside the pod, or use a category that supports snapshots";
    SnapshotNotReady "SNAPSHOT_NOT_READY" FailedPrecondition [SnapshotNotReady]
        "the snapshot cannot be used yet",
        "the caller retries automatically; if the error persists, check the snapshot's progress in the console";
    SnapshotInUse "SNAPSHOT_IN_USE" FailedPrecondition [UsedByDisk UsedByImage]
        "disks or images were created from the snapshot",
        "delete those disks or images first";
    SnapshotLocked "SNAPSHOT_LOCKED" FailedPrecondition [SnapshotLocked SnapshotShared SnapshotManaged]
        "the snapshot is locked, shared or managed by another product",
        "unlock it or stop sharing it in the console, or delete it in the product that manages it";
    NotGroupable "NOT_GROUPABLE" FailedPrecondition
        "the cloud cannot create snapshots of these volumes at one instant",
        "create a group of compatible volumes, or create their snapshots individually";
    GroupInUse "GROUP_IN_USE" FailedPrecondition
        "some snapshots of the group cannot be deleted yet, so the group remains",
        "release or delete what the message names, then delete the group again";
    SnapshotIncompatible "SNAPSHOT_INCOMPATIBLE" FailedPrecondition [SnapshotIncompatible]
        "the cloud cannot create such a disk from this snapshot",
        "use another snapshot, category or zone";
    UnknownRegion "UNKNOWN_REGION" FailedPrecondition [UnknownRegion RegionUnsupported]
        "the region does not exist, or has no disks",
        "correct --region (`region` of the chart)";
    InvalidCloudEndpoint "INVALID_CLOUD_ENDPOINT" FailedPrecondition [NeedsTls InvalidCloudEndpoint]
        "the endpoint is not the ECS API, or accepts only HTTPS",
        "correct --ecs-endpoint; if it is correct, report this message as a bug";

    // Transient.
    Throttled "THROTTLED" Unavailable [Throttled AccountThrottled TooManyOperations]
        "the API's quota of calls is exhausted",
        "the caller retries automatically; if the error persists, other programs of the account may use up the API's quota; the Quota Center shows it";
    CloudUnreachable "CLOUD_UNREACHABLE" Unavailable [Unreachable]
        "no connection to the cloud",
        "check --region and --ecs-endpoint, which determine the address, and the network of the controller: DNS, proxy, NetworkPolicy";
    TlsUntrusted "TLS_UNTRUSTED" Unavailable [TlsUntrusted]
        "the certificate of the cloud's endpoint or of the proxy is issued by an authority that is not trusted",
        "if the issuer in the message belongs to your company or cloud, set --ca-bundle (`controller.caBundle` of the chart) to its certificate; otherwise check --ecs-endpoint, --sts-endpoint and what intercepts the connection";
    TlsCertificateInvalid "TLS_CERTIFICATE_INVALID" Unavailable [TlsInvalid]
        "the certificate of the cloud's endpoint or of the proxy has expired, is not valid yet, or is not valid for the host",
        "renew or replace the certificate of the host in the message; if it is valid, correct --ecs-endpoint, --sts-endpoint or the proxy, or the clock of the controller's machine";
    OutcomeUnknown "OUTCOME_UNKNOWN" Unavailable [Ambiguous NonceUsed]
        "the operation may have succeeded: the response was lost, or the cloud failed",
        "the caller retries automatically; if the error persists, check the network of the controller, and send the RequestId to the vendor's support";
    EmptyResponse "EMPTY_RESPONSE" Unavailable
        "the cloud returned no rows, although resources of this cluster exist",
        "the caller retries automatically; if the error persists, check that the access key may call the Describe actions (deploy/ram-policies)";
    AbsenceUnproven "ABSENCE_UNPROVEN" Unavailable
        "the cloud does not return the resource, which does not prove that it does not exist",
        "the caller retries automatically; if the error persists, for a new resource after ten minutes, check that --region and the account of the access key are those of this cluster, and that its RAM policy allows the describe action in the message";
    CreationUnresolved "CREATION_UNRESOLVED" Unavailable
        "an earlier attempt to create the resource may have succeeded; its outcome is not known yet",
        "the caller retries automatically; if the error persists, fix the cause at the end of the message, or search the console for a disk or snapshot with this name";
    ShuttingDown "SHUTTING_DOWN" Unavailable
        "the driver is shutting down, or cannot serve yet",
        "the caller retries automatically; if the error persists, check why no other process of the driver becomes ready: /readyz and the log report it";
    OperationPending "OPERATION_PENDING" Aborted
        "another operation for this volume or snapshot is pending",
        "the caller retries automatically; if the error persists, check the log of this process for what the other operation waits for; on a node, the message names the running step, and a full check can take hours";
    CloudOperationPending "CLOUD_OPERATION_PENDING" Aborted [OperationPending]
        "the cloud is still processing an earlier operation on this disk",
        "the caller retries automatically; if the error persists, check the disk's tasks in the console";
    ResourceBusy "RESOURCE_BUSY" Aborted [Conflict DiskStatus NotAttached DiskUnchanged ChangedTooOften]
        "the disk or snapshot is in a transient state, or another operation is in progress",
        "the caller retries automatically; if the error persists, check the disk in the console";
    NodeBusy "NODE_BUSY" Aborted [NodeOccupied NodeStatus NodeStopped]
        "the instance is processing another disk, or is neither running nor stopped",
        "the caller retries automatically; if the error persists, check the instance in the console";
    // Not a precondition: external-resizer would treat it as "offline expansion only".
    NodeStopped "NODE_STOPPED" Aborted
        "the disk can be expanded only while its instance runs",
        "start the instance, or unpublish the volume";
    SnapshotNotCut "SNAPSHOT_NOT_CUT" Aborted
        "the snapshot or group is not cut yet",
        "the caller retries automatically; if the error persists, check the snapshot in the console";
    ClientTokenConflict "CLIENT_TOKEN_CONFLICT" Aborted [TokenMismatch]
        "an earlier request with this name had other parameters, and the cloud remembers its client token",
        "the caller retries automatically; if the error persists, delete the claim and create another one";
    NodeReleased "NODE_RELEASED" Unavailable
        "the cloud lists the disk as attached to an instance that does not exist any more",
        "the caller retries automatically; if the error persists, check the disk in the console, and send the RequestId to the vendor's support";
    StalePageToken "STALE_PAGE_TOKEN" Aborted
        "the page token has expired or is unknown",
        "list again from the first page";
    TimedOut "TIMED_OUT" DeadlineExceeded [Deadline]
        "the operation takes longer than usual, and may still be in progress",
        "the cloud continues the operation and the caller retries automatically; if the error persists, check the last observed state in the message";
    DetachStuck "DETACH_STUCK" DeadlineExceeded
        "the instance does not release the disk",
        "the cloud continues the detachment and the caller retries automatically; if the error persists, stop what uses the disk on the node, or stop the instance if it exists";
    AttachQueueTimeout "ATTACH_QUEUE_TIMEOUT" DeadlineExceeded
        "operations for other disks of this node take longer than usual",
        "the caller retries automatically; if the error persists, check the log for the disk of this node that does not attach or detach";

    // Permissions.
    AccessDenied "ACCESS_DENIED" PermissionDenied [Denied]
        "the access key does not have permission",
        "check the RAM policy of the access key's user or role";
    CredentialsExpired "CREDENTIALS_EXPIRED" PermissionDenied
        [OidcTokenExpired TokenExpired OidcTokenRefused TokenRefused]
        "the security token has expired, is missing or belongs to another key",
        "check what renews the credentials: the instance role, the OIDC token file, or the Secret";
    AccessKeyNotFound "ACCESS_KEY_NOT_FOUND" PermissionDenied [AccessKeyNotFound]
        "the access key does not exist",
        "check the access key in the Secret or the environment of the driver; it may have been deleted, or belong to another cloud";
    AccessKeyInactive "ACCESS_KEY_INACTIVE" PermissionDenied [KeyInactive]
        "the access key is disabled",
        "enable it in the RAM console, or use another one";
    SignatureMismatch "SIGNATURE_MISMATCH" PermissionDenied [SignatureMismatch]
        "the cloud computes a different signature",
        "check the secret of the access key: it may belong to another key";
    ClockSkew "CLOCK_SKEW" PermissionDenied [ClockSkew ClockFormat]
        "the cloud rejects the time of the request, also after it was taken from the cloud's response",
        "correct the clock of the controller's machine";
    RoleNotAssumable "ROLE_NOT_ASSUMABLE" PermissionDenied [RoleNotAssumable RoleParameter]
        "the role does not exist, or this identity may not assume it",
        "check the role's name and its trust policy";
    FeatureNotEnabled "FEATURE_NOT_ENABLED" PermissionDenied [FeatureNotEnabled]
        "the account may not use this feature or region",
        "ask the vendor to enable it for the account";
    NoCredentials "NO_CREDENTIALS" Unauthenticated [NoCredentials]
        "no access key, an incomplete or malformed one, or no credentials from the role",
        "check the source in the message";

    // Invalid requests.
    BadRequest "BAD_REQUEST" InvalidArgument
        "a field of the request, a StorageClass parameter, an access mode or a mount option is invalid",
        "correct the StorageClass or the claim";
    TooManyTags "TOO_MANY_TAGS" InvalidArgument [TooManyTags]
        "a disk or snapshot can have 20 tags, including those of the driver",
        "remove tags from the class, or from the disk in the console";
    UnknownZone "UNKNOWN_ZONE" InvalidArgument [UnknownZone ZoneFilter]
        "the zone does not exist",
        "correct `zoneId` of the StorageClass, or the zone labels of the nodes";
    EncryptionMismatch "ENCRYPTION_MISMATCH" InvalidArgument [EncryptionMismatch EncryptionUnsupported]
        "the encryption parameters do not match the snapshot, the key or the account's default",
        "correct `encrypted` and `kmsKeyId` of the StorageClass";
    MultiAttachDisabled "MULTI_ATTACH_DISABLED" InvalidArgument
        "the access mode is for several nodes, but the disk was created without multi-attach",
        "create the volume with `multiAttach: \"true\"`, or use an access mode for a single node";
    SnapshotInGroup "SNAPSHOT_IN_GROUP" InvalidArgument
        "the snapshot belongs to a group, and cannot be deleted alone",
        "delete the group (DeleteVolumeGroupSnapshot)";
    GroupMembersMismatch "GROUP_MEMBERS_MISMATCH" InvalidArgument
        "the members of the group differ from the request",
        "pass the snapshots that CreateVolumeGroupSnapshot returned";
    ModifyRejected "MODIFY_REJECTED" InvalidArgument
        "the disk cannot be modified as the VolumeAttributesClass specifies",
        "correct the VolumeAttributesClass to the limit in the message, or move the data to another volume";
    RequestRejected "REQUEST_REJECTED" InvalidArgument [Invalid PerformanceUnsupported]
        "the cloud rejects this request permanently",
        "correct the StorageClass or the claim according to the documentation of the cloud's error code";

    // Failures.
    AttachFailed "ATTACH_FAILED" Internal
        "the cloud accepted the attachment, and then failed to complete it",
        "the caller retries automatically; if the error persists, check the instance's events in the console";
    ModifyFailed "MODIFY_FAILED" Internal
        "the cloud started to modify the disk and failed; the disk is unchanged",
        "the caller retries automatically; if the error persists, check the task in the console";
    SnapshotFailed "SNAPSHOT_FAILED" Internal
        "the cloud started the snapshot and failed",
        "follow the message; do not restart the instance while a snapshot is being created";
    GroupFailed "GROUP_FAILED" Internal
        "the cloud started the snapshots of a group, and not all of them succeeded",
        "follow the message; do not restart the instances while their snapshots are being created";
    DriverBug "DRIVER_BUG" Internal [Bug DryRunAccepted NothingToModify]
        "the driver sent a request that the cloud cannot parse, or failed internally",
        "report this message as a bug";

    // On the node.
    DeviceNotFound "DEVICE_NOT_FOUND" DeadlineExceeded
        "the cloud has attached the disk, but no device with its serial has appeared",
        "the caller retries automatically; if the error persists, check the node's kernel log, and whether /dev and /sys are the host's; replace a disk without a serial (docs/guides/disk-without-serial.md)";
    DeviceAmbiguous "DEVICE_AMBIGUOUS" FailedPrecondition
        "the device of the disk is not unique: two devices have its serial, or a link points to another disk",
        "check the devices in the message; restart the node if one of the devices or links is stale";
    DeviceUnidentified "DEVICE_UNIDENTIFIED" Unavailable
        "a device that may be the disk has not reported its serial, so unmounting cannot be completed safely",
        "the caller retries automatically; if the error persists, check the disk in the console and the node's kernel log: the disk does not respond";
    DeviceNotResized "DEVICE_NOT_RESIZED" DeadlineExceeded
        "the disk was expanded in the cloud, but its device has the old size",
        "the caller retries automatically; if the error persists, detach the disk and attach it again, as after an offline expansion";
    StagingConflict "STAGING_CONFLICT" AlreadyExists
        "the volume is already staged or published with other settings",
        "wait until it is unpublished there, or delete the pod that uses it";
    DuplicateFilesystem "DUPLICATE_FILESYSTEM" FailedPrecondition
        "a btrfs with the same UUID is mounted on the node, such as the source of the snapshot that the disk was created from; Linux before 6.7 cannot mount both",
        "run the pods on different nodes, or on nodes with Linux 6.7 or newer";
    ForeignData "FOREIGN_DATA" FailedPrecondition
        "the disk contains something other than the requested filesystem; it is never formatted then",
        "examine its content; wipe the disk manually only if nobody needs it, or recreate the PersistentVolume with the right fsType (docs/guides/foreign-data.md)";
    FormatInterrupted "FORMAT_INTERRUPTED" FailedPrecondition
        "mkfs was interrupted, and the driver cannot prove that the content is its own",
        "examine its content, and wipe the disk manually if nobody needs it (docs/guides/foreign-data.md); staging then formats it";
    FormatRunning "FORMAT_RUNNING" Aborted
        "mkfs of an earlier process of the node plugin is still running, or another process has locked the device",
        "the caller retries automatically; if the error persists, check which process has the device open";
    DeviceInUse "DEVICE_IN_USE" FailedPrecondition
        "a process or mount on the node uses the device or the mount",
        "end or release what the message names; the operation then continues";
    TargetConflict "TARGET_CONFLICT" FailedPrecondition
        "the path has the wrong type, or something else is mounted there",
        "clean up the path in the message";
    PathNotAllowed "PATH_NOT_ALLOWED" InvalidArgument
        "the path is outside kubelet's directory, and volumes are mounted nowhere else",
        "set --kubelet-dir to kubelet's --root-dir";
    NotStaged "NOT_STAGED" FailedPrecondition
        "the volume is not staged, or not with the settings that this call requires",
        "the caller retries automatically after staging; if the error persists, delete the pod";
    RemountedReadOnly "REMOUNTED_READ_ONLY" FailedPrecondition
        "the kernel remounted the filesystem read-only after an error, so it cannot be used by another pod",
        "stop all pods that use the volume (scale the workload to 0), so that it is unstaged, and start them again";
    FilesystemShutDown "FILESYSTEM_SHUT_DOWN" FailedPrecondition
        "all I/O of the staged filesystem fails, because it has shut down after an error",
        "check the node's kernel log; stop all pods that use the volume (scale the workload to 0), so that it is unstaged, and start them again";
    AccessModeConflict "ACCESS_MODE_CONFLICT" FailedPrecondition
        "the access mode does not allow a second use, or not this combination",
        "use an access mode that allows it, or stop the other pod";
    FilesystemDamaged "FILESYSTEM_DAMAGED" FailedPrecondition
        "the filesystem is damaged beyond automatic repair",
        "run the filesystem check manually, preferably on a disk that is restored from a snapshot";
    JournalNotReplayed "JOURNAL_NOT_REPLAYED" FailedPrecondition
        "the disk is attached read-only, and its filesystem was not unmounted cleanly",
        "mount it writable once, or set the mount flag that ignores the journal: noload for ext3 and ext4, norecovery for xfs, rescue=nologreplay for btrfs";
    ReadOnlyUnsupported "READ_ONLY_UNSUPPORTED" FailedPrecondition
        "a blank disk, or one that must be expanded, cannot be used read-only",
        "use it writable once";
    CapabilityMissing "CAPABILITY_MISSING" FailedPrecondition
        "the kernel requires a capability that the node plugin's container does not have",
        "grant the capability in the message";
    BlockSettingRejected "BLOCK_SETTING_REJECTED" FailedPrecondition
        "the kernel does not have a setting of `sysConfig`, or rejects its value for this device",
        "recreate the PersistentVolume without the setting, or use nodes with another kernel; for new volumes, use a class without it";
    MountOptionsRejected "MOUNT_OPTIONS_REJECTED" InvalidArgument
        "the kernel rejects the mount options, or features of the filesystem",
        "read the node's kernel log; correct mountOptions of the StorageClass or the volume, or move the pod to a node with a newer kernel";
    InvalidSettingsFile "INVALID_SETTINGS_FILE" FailedPrecondition
        "the file of instance types (`--instance-types-file`) is invalid",
        "correct the field in the message (`node.instanceTypes` of the chart), or set `node.maxVolumesPerNode`";
    ToolQueueTimeout "TOOL_QUEUE_TIMEOUT" DeadlineExceeded
        "as many filesystem tools or full checks of other volumes run as may run simultaneously",
        "the caller retries automatically; if the error persists, check at /debug/volumes of the node which volumes are being checked";
    ToolFailed "TOOL_FAILED" Internal
        "a filesystem tool failed",
        "read its output in the message; check the node's kernel log; if it ran out of memory or was terminated by a signal, raise the container's memory limit, and --tool-memory if it is set";
    HostError "HOST_ERROR" Internal
        "a system call failed, or the content of the disk cannot be determined",
        "read the message; check the node's kernel log";
    DiskHung "DISK_HUNG" DeadlineExceeded
        "the disk does not respond: I/O has been in flight for 5 s or longer, and none has completed",
        "check the disk in the console and the node's kernel log; the operation continues as soon as the disk responds (docs/guides/stuck-volume.md)";
    HostTimeout "HOST_TIMEOUT" DeadlineExceeded
        "the node did not complete the operation in time",
        "the caller retries automatically; if the error persists, check the node's kernel log";
}
