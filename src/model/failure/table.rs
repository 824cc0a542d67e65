//! The table of failures.

use super::Meaning;

/// Each row: the variant, its name, what it means for the caller, in words, and what to do.
macro_rules! failures {
    ($($variant:ident $name:literal $meaning:ident $means:literal, $todo:literal;)*) => {
        /// One way to fail, under its stable name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Failure {
            $(#[doc = $means] $variant,)*
        }

        impl Failure {
            /// All, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The stable name, in capitals.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it means for the caller.
            #[must_use]
            pub fn meaning(self) -> Meaning {
                match self { $(Self::$variant => Meaning::$meaning,)* }
            }

            /// What it means, for people.
            #[must_use]
            pub fn means(self) -> &'static str {
                match self { $(Self::$variant => $means,)* }
            }

            /// What to do about it.
            #[must_use]
            pub fn todo(self) -> &'static str {
                match self { $(Self::$variant => $todo,)* }
            }
        }
    };
}

failures! {
    // What is not there.
    NoSuchDisk "NO_SUCH_DISK" NotFound
        "the disk is not in this region, or this account may not see it",
        "check --region, the account of the access key, and whether the disk was deleted by hand";
    NoSuchSnapshot "NO_SUCH_SNAPSHOT" NotFound
        "the snapshot is not in this region, or this account may not see it",
        "check --region, the account of the access key, and whether the snapshot was deleted or has expired";
    NoSuchNode "NO_SUCH_NODE" NotFound
        "the instance is not in this region",
        "check that the node is an instance of this region, and whether it was released";
    NoSuchGroup "NO_SUCH_GROUP" NotFound
        "the snapshot group is not in this region, or this account may not see it",
        "check --region, the account of the access key, and whether the group was deleted by hand";
    NoSuchResource "NO_SUCH_RESOURCE" NotFound
        "what the request names does not exist, or not there",
        "check the id and the path that the text names";

    // Whose it is, and where it is.
    NotOurs "NOT_OURS" Precondition
        "the disk or snapshot was not created by this cluster's driver, so that it is never deleted",
        "delete it in the console if it is no longer needed, or give it this cluster's tag";
    NameTaken "NAME_TAKEN" AlreadyExists
        "a disk or snapshot of this name exists and differs from the request",
        "delete the old one if it is no longer needed, or use another name";
    DiskInUseElsewhere "DISK_IN_USE_ELSEWHERE" Precondition
        "another node holds the disk, and a disk is never taken from a node",
        "wait until it is unpublished there; delete the pod that uses it, or fence the node if it is dead";
    DiskStillAttached "DISK_STILL_ATTACHED" Precondition
        "the disk is attached, and so not deleted",
        "unpublish it first: delete the pod that uses it; the VolumeAttachment only when no pod uses the volume";
    AttachedOtherwise "ATTACHED_OTHERWISE" AlreadyExists
        "the disk is on this node already, but writable instead of read-only, or the other way round",
        "unpublish the volume from this node first";
    TooManyHolders "TOO_MANY_HOLDERS" Exhausted
        "as many instances as the cloud allows hold the multi-attach disk",
        "unpublish it from a node that no longer needs it";

    // What cannot be had.
    OutOfStock "OUT_OF_STOCK" Exhausted
        "no category in no zone that the request admits can be had now",
        "add categories to `type` or zones to `zoneId` of the StorageClass, or wait until there is stock";
    QuotaReached "QUOTA_REACHED" Exhausted
        "a quota of the account is used up",
        "raise the quota in the Quota Center, or free some of it";
    NodeFull "NODE_FULL" Exhausted
        "the instance takes no more disks",
        "let the volume's pod run on another node, or detach a disk; check that CSINode shows the node's true limit";
    NoZoneFits "NO_ZONE_FITS" Exhausted
        "no zone satisfies class, topology and node at once",
        "compare `zoneId` of the StorageClass with the zones of the nodes";
    OutOfRange "OUT_OF_RANGE" OutOfRange
        "no such size, performance level or number of IOPS is sold",
        "ask for another size or level, or use another category";

    // What somebody must change.
    StateForbids "STATE_FORBIDS" Precondition
        "the state or kind of the disk, snapshot or node does not permit it",
        "look up the cloud's code, and change what it names";
    AccountInArrears "ACCOUNT_IN_ARREARS" Precondition
        "the account, or the bill of the resource, does not permit it",
        "pay what is due, or top the account up";
    KmsKeyUnusable "KMS_KEY_UNUSABLE" Precondition
        "the key is missing, disabled, asymmetric, or not given to the disk service",
        "check `kmsKeyId` of the StorageClass, the key's state in KMS, and the role AliyunECSDiskEncryptDefaultRole";
    NotInSameZone "NOT_IN_SAME_ZONE" Precondition
        "disk and node are in different zones",
        "schedule the pod to a node in the disk's zone; check the node affinity of the volume";
    NodeTypeUnfit "NODE_TYPE_UNFIT" Precondition
        "the node's instance type does not take this kind of disk",
        "let the volume's pod run on a type that takes the category, or choose another `type` in the StorageClass";
    NodeNeedsRestart "NODE_NEEDS_RESTART" Precondition
        "a change of the instance takes effect only with a restart",
        "restart the instance in the console";
    NodeLocked "NODE_LOCKED" Precondition
        "the instance is locked for security",
        "unlock the instance in the console";
    DiskNotMovable "DISK_NOT_MOVABLE" Precondition
        "the disk is a subscription, a system disk or bound to its instance",
        "convert a subscription disk to pay-as-you-go in the console; run the pod of an elastic ephemeral disk on the node that first used the volume";
    SystemDisk "SYSTEM_DISK" Precondition
        "the disk is the system disk of an instance, and only data disks are volumes",
        "take a snapshot of the disk and restore that";
    SecondWriter "SECOND_WRITER" Precondition
        "another node may write to the shared disk, and the access mode is for one writer",
        "publish the volume read-only, or unpublish it from the other node";
    CoolingPeriod "COOLING_PERIOD" Precondition
        "the disk was changed a short while ago, and the cloud wants time in between",
        "wait: it is tried again; if it stays, see whether something else changes the disk";
    OnlyOffline "ONLY_OFFLINE" Precondition
        "this disk or instance grows only while the disk is free",
        "stop the pod that uses the volume; the expansion goes on then";
    NeverAttached "NEVER_ATTACHED" Precondition
        "the disk was never attached, and the cloud takes snapshots only of disks that were",
        "start a pod that uses the volume, then try again";
    SnapshotUnsupported "SNAPSHOT_UNSUPPORTED" Precondition
        "the disk's category has no snapshots",
        "back the data up inside the pod, or use a category that has snapshots";
    SnapshotNotReady "SNAPSHOT_NOT_READY" Precondition
        "the snapshot cannot be used yet",
        "wait: it is tried again; if it stays, look at the snapshot's progress in the console";
    SnapshotInUse "SNAPSHOT_IN_USE" Precondition
        "disks or images were created from the snapshot",
        "delete those disks or images first";
    SnapshotLocked "SNAPSHOT_LOCKED" Precondition
        "the snapshot is locked, shared or managed by another product",
        "unlock it or end its sharing in the console, or delete it in the product that manages it";
    NotGroupable "NOT_GROUPABLE" Precondition
        "the cloud takes no snapshots of these volumes at one instant",
        "make a group of volumes that go together, or take their snapshots one by one";
    GroupHeld "GROUP_HELD" Precondition
        "some snapshots of the group cannot be deleted yet, and the group stays with them",
        "release or delete what the text names, then delete the group again";
    SnapshotUnfit "SNAPSHOT_UNFIT" Precondition
        "the cloud makes no such disk from this snapshot",
        "use another snapshot, category or zone";
    WrongRegion "WRONG_REGION" Precondition
        "the cloud does not know the region, or not for disks",
        "correct --region (`region` of the chart)";
    WrongEndpoint "WRONG_ENDPOINT" Precondition
        "what answers is not the ECS API, or only over HTTPS",
        "correct --ecs-endpoint; if it is correct, report this text as a mistake of the driver";

    // What passes.
    Throttled "THROTTLED" Unclear
        "the cloud lets no more calls of this API through in this minute",
        "nothing at first: it is repeated; if it stays, other programs of this account may use its API quota up, which the Quota Center shows";
    CloudUnreachable "CLOUD_UNREACHABLE" Unclear
        "no connection to the cloud",
        "check --region and --ecs-endpoint, which the address comes from, and the network of the controller: DNS, proxy, NetworkPolicy";
    CloudUnclear "CLOUD_UNCLEAR" Unclear
        "it may or may not have happened: the answer was lost, or the cloud failed",
        "nothing at first: it is repeated; if it stays, check the network of the controller, and give the RequestId to the vendor's support";
    EmptyResponse "EMPTY_RESPONSE" Unclear
        "the cloud returned no rows, although resources of this cluster exist",
        "the caller retries automatically; if the error persists, check that the access key may call the Describe actions (deploy/ram-policies)";
    AbsenceUnproven "ABSENCE_UNPROVEN" Unclear
        "the cloud does not return the resource, which does not prove that it does not exist",
        "the caller retries automatically; if the error persists, check that the RAM policy of the controller allows the describe action that the text names, and ModifyDiskSpec or UntagResources";
    CreationUnresolved "CREATION_UNRESOLVED" Unclear
        "an earlier attempt to create the resource may have succeeded, and whether it did is not known yet",
        "the caller retries automatically; if the error persists, fix the cause that the text ends with, or search the console for a disk or snapshot with this name";
    ShuttingDown "SHUTTING_DOWN" Unclear
        "the driver is shutting down, or cannot serve now",
        "nothing at first: it is repeated; if it stays, look why no other process of the driver becomes ready, which /readyz and its log tell";
    CallRunning "CALL_RUNNING" Busy
        "another call for this volume or snapshot is still running",
        "nothing at first: it is repeated; if it stays, look in the log of this process for what the other call waits for";
    CallInFlight "CALL_IN_FLIGHT" Busy
        "the cloud still works at an earlier call or order for this disk",
        "nothing at first: it is repeated; if it stays, look at the disk's tasks in the console";
    ResourceBusy "RESOURCE_BUSY" Busy
        "the disk or snapshot is in another state now, or something else is being done to it",
        "nothing at first: it is repeated; if it stays, look at the disk in the console";
    NodeBusy "NODE_BUSY" Busy
        "the instance is busy with another disk, or neither running nor stopped",
        "nothing at first: it is repeated; if it stays, look at the instance in the console";
    // Not a precondition: external-resizer would take that for "only offline".
    NodeStopped "NODE_STOPPED" Busy
        "the disk grows only while its instance runs",
        "start the instance, or unpublish the volume";
    SnapshotNotCut "SNAPSHOT_NOT_CUT" Busy
        "the point in time of the snapshot or group is not cut yet",
        "nothing at first: it is repeated; if it stays, look at the snapshot in the console";
    TokenTaken "TOKEN_TAKEN" Busy
        "an earlier call of this name asked for something else, and the cloud remembers it",
        "nothing at first: it is repeated; if it stays, use another name";
    StaleToken "STALE_TOKEN" Busy
        "the page of the list is not known any more, or never was",
        "list again from the start";
    DeadlinePassed "DEADLINE_PASSED" Deadline
        "it was not done in time, and may still be under way",
        "nothing at first: it is repeated; if it stays, look at what the text says was seen last";
    StillDetaching "STILL_DETACHING" Deadline
        "the node does not let go of the disk",
        "nothing at first: the cloud goes on by itself, and it is repeated; if it stays, stop what still uses the disk on the node, or stop the instance";
    QueueTooLong "QUEUE_TOO_LONG" Deadline
        "other disks of this node came first",
        "nothing at first: it is repeated; if it stays, look in the log which other disk of this node does not come or go";

    // Who may.
    CredentialsDenied "CREDENTIALS_DENIED" Denied
        "the access key is not permitted to do it",
        "check the RAM policy of the access key's user or role";
    CredentialsExpired "CREDENTIALS_EXPIRED" Denied
        "the security token is expired, missing or of another key",
        "check what renews the credentials: the instance role, the OIDC token file, or the Secret";
    KeyUnknown "KEY_UNKNOWN" Denied
        "the cloud does not know the access key",
        "check the access key in the Secret; it may have been deleted, or belong to another cloud";
    KeySwitchedOff "KEY_SWITCHED_OFF" Denied
        "the access key is switched off",
        "switch it on in the RAM console, or use another one";
    SignatureRefused "SIGNATURE_REFUSED" Denied
        "the cloud computes another signature",
        "check the secret of the access key: it may be that of another key";
    ClockWrong "CLOCK_WRONG" Denied
        "the controller's clock is more than 15 minutes off",
        "correct the clock of the controller's machine";
    RoleUnusable "ROLE_UNUSABLE" Denied
        "the role does not exist, or may not be assumed by this identity",
        "check the role's name and its trust policy";
    FeatureNotEnabled "FEATURE_NOT_ENABLED" Denied
        "the account may not use this feature or region",
        "ask the vendor to enable it for the account";
    NoCredentials "NO_CREDENTIALS" NoCredentials
        "there is no key, half of one, or no credentials of the role can be had",
        "check the source that the text names";

    // What is asked for.
    BadRequest "BAD_REQUEST" Refused
        "a field of the request, a StorageClass parameter, an access mode or a mount option is wrong",
        "correct the StorageClass or the claim";
    TooManyTags "TOO_MANY_TAGS" Refused
        "a disk or snapshot takes 20 tags, those of the driver among them",
        "take tags out of the class, or off the disk in the console";
    WrongZone "WRONG_ZONE" Refused
        "the cloud does not know the zone",
        "correct `zoneId` of the StorageClass, or the zone labels of the nodes";
    EncryptionMismatch "ENCRYPTION_MISMATCH" Refused
        "the wish for encryption does not fit the snapshot, the key or the account's default",
        "correct `encrypted` and `kmsKeyId` of the StorageClass";
    DiskNotShared "DISK_NOT_SHARED" Refused
        "the access mode is for several nodes, and the disk was not made to be shared",
        "create the volume with `multiAttach: \"true\"`, or use an access mode for one node";
    SnapshotInGroup "SNAPSHOT_IN_GROUP" Refused
        "the snapshot is part of a group, which holds its snapshots together",
        "delete the group (DeleteVolumeGroupSnapshot)";
    OtherMembers "OTHER_MEMBERS" Refused
        "the group has other members than the request says",
        "give the snapshots that CreateVolumeGroupSnapshot answered";
    ChangeRefused "CHANGE_REFUSED" Refused
        "the disk cannot become what the VolumeAttributesClass asks for",
        "correct the VolumeAttributesClass by the bound that the text names, or move the data to another volume";
    CloudRefuses "CLOUD_REFUSES" Refused
        "the cloud never accepts this request",
        "look up the cloud's code; correct the StorageClass or the claim";

    // What went wrong.
    AttachFellBack "ATTACH_FELL_BACK" Failed
        "the cloud accepted the attachment and gave it up",
        "nothing at first: it is repeated; if it stays, look at the instance's events in the console";
    ChangeFailed "CHANGE_FAILED" Failed
        "the cloud began to change the disk and gave it up; the disk is as it was before",
        "nothing at first: it is repeated; if it stays, look at the task in the console";
    SnapshotFailed "SNAPSHOT_FAILED" Failed
        "the cloud began the snapshot and gave it up",
        "do what the text says; do not restart the instance while a snapshot is being taken";
    GroupFailed "GROUP_FAILED" Failed
        "the cloud began the snapshots of a group and gave up, or not all of them came about",
        "do what the text says; do not restart the instances while their snapshots are being taken";
    DriverBug "DRIVER_BUG" Failed
        "the driver sent what the cloud does not understand, or failed by itself",
        "report this text: it is a mistake of the driver";

    // On the node.
    DeviceMissing "DEVICE_MISSING" Deadline
        "the cloud has attached the disk, but its device has not come",
        "nothing at first: it is repeated; if it stays, look at the node's kernel log, and whether /dev and /sys are the host's";
    DeviceAmbiguous "DEVICE_AMBIGUOUS" Precondition
        "which device is the disk is not certain: two have its serial, a link or a mark says otherwise than the kernel, or the serial is too long for a device",
        "look at the devices that the text names; remove a wrong mark; restart the node if one of them is a ghost";
    DeviceNotGrown "DEVICE_NOT_GROWN" Deadline
        "the disk has grown in the cloud, but not yet on the node",
        "nothing at first: it is repeated; if it stays, detach the disk and attach it anew, as one that grew offline needs";
    StagedOtherwise "STAGED_OTHERWISE" AlreadyExists
        "the volume is staged or published there in another way",
        "wait until it is unpublished there, or delete the pod that uses it so";
    ForeignData "FOREIGN_DATA" Precondition
        "the disk holds something else than the filesystem that is wanted; it is never formatted then",
        "look what it is; wipe the disk by hand only if nobody needs it, or make the PersistentVolume anew with the right fsType (docs/guides/foreign-data.md)";
    FormatCutOff "FORMAT_CUT_OFF" Precondition
        "a mkfs was cut off on the disk, and it is not certain that what is there now is nobody's",
        "look what it is, and wipe the disk by hand if nobody needs it (docs/guides/foreign-data.md); staging formats it then";
    FormatRunning "FORMAT_RUNNING" Busy
        "a mkfs that an earlier run of the node began is still at work on the disk, or another process has locked it",
        "nothing at first: it is repeated; if it stays, look which process has the device open";
    DeviceInUse "DEVICE_IN_USE" Precondition
        "something on the node uses the device or the mount, or has it mounted elsewhere",
        "end or release what the text names; after that it goes on by itself";
    TargetUnusable "TARGET_UNUSABLE" Precondition
        "the path is not what it should be, or something else is mounted there",
        "clean the path up that the text names";
    PathOutside "PATH_OUTSIDE" Refused
        "the path is not below kubelet's directory, and volumes are mounted nowhere else",
        "set --kubelet-dir to what kubelet has as its --root-dir";
    NotStaged "NOT_STAGED" Precondition
        "the volume is not staged, or not in the way that this call needs",
        "nothing at first: kubelet stages it first; if it stays, delete the pod";
    AccessConflict "ACCESS_CONFLICT" Precondition
        "the access mode does not admit a second use, or not this one beside the first",
        "use an access mode that admits it, or stop the other pod";
    FilesystemDamaged "FILESYSTEM_DAMAGED" Precondition
        "the filesystem is damaged beyond what may be repaired unasked",
        "run the check by hand, best on a disk from a snapshot";
    JournalNotReplayed "JOURNAL_NOT_REPLAYED" Precondition
        "the disk was attached only to be read, and its filesystem was not unmounted in order",
        "mount it writable once, or give the mount flag that leaves the journal alone: noload for ext3 and ext4, norecovery for xfs";
    ReadOnlyUnfit "READ_ONLY_UNFIT" Precondition
        "a blank disk, or one that shall grow, cannot be used read-only",
        "use it writable once";
    CapabilityMissing "CAPABILITY_MISSING" Precondition
        "the kernel wants more rights than the node's container has",
        "grant the capability that the text names";
    MountOptionsRefused "MOUNT_OPTIONS_REFUSED" Refused
        "the kernel does not take the mount options",
        "correct mountOptions of the StorageClass or the volume";
    SettingWrong "SETTING_WRONG" Precondition
        "a file that the node is told to read is not as it must be",
        "correct the field of the file that the text names, or take the flag away";
    ToolsWaiting "TOOLS_WAITING" Deadline
        "the filesystem tools of other volumes have the memory that is set apart for such tools",
        "nothing at first: it is repeated; if it stays, raise the container's memory limit, and --tool-memory where it is set";
    ToolFailed "TOOL_FAILED" Failed
        "a filesystem tool failed",
        "read its words; look at the node's kernel log";
    HostFailed "HOST_FAILED" Failed
        "a system call failed, or the content of the disk cannot be told",
        "read the text; look at the node's kernel log";
    HostSlow "HOST_SLOW" Deadline
        "the node did not do it in time",
        "nothing at first: it is repeated; if it stays, look at the node's kernel log";
}
