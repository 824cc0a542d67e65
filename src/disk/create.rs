//! Creating a disk, blank or from a snapshot.

use super::error::{Error, cloud, wait};
use super::place::{Candidate, candidates};
use super::{Disks, Result, compare, label};
use crate::base::Deadline;
use crate::cloud::poll::Seen;
use crate::cloud::{CreateDisk, Kind};
use crate::model::{
    Bytes, Category, ClientToken, Disk, DiskId, DiskStatus, SizeRange, SnapshotId, ZoneId,
};

/// How often the tags are looked at before a token that was used otherwise is given up.
const LOOKS_FOR_LAGGING_TAGS: u32 = 5;

/// A disk that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDisk {
    /// The CSI name; the same name is the same disk.
    pub name: String,
    /// How large.
    pub size: SizeRange,
    /// What to buy, in order of preference; not empty.
    pub categories: Vec<Category>,
    /// Where, in order of preference; not empty.
    pub zones: Vec<ZoneId>,
    /// What to start from; none is blank.
    pub snapshot: Option<SnapshotId>,
    /// Encrypt at rest.
    pub encrypted: bool,
    /// By this key of the user's; needs `encrypted`.
    pub kms_key: Option<String>,
}

impl Disks {
    /// The disk of this name, created unless it exists, and `Available` or beyond.
    ///
    /// # Errors
    /// [`Error::Exists`] when the name belongs to a disk that differs; [`Error::OutOfStock`] when
    /// nothing of what is wanted can be had; [`Error::OutOfRange`] when nothing has that size.
    pub async fn create(&self, deadline: Deadline, new: &NewDisk) -> Result<Disk> {
        let new = &self.sized_for_source(deadline, new).await?;
        let candidates = candidates(new)?;
        // A single pair is safe by its token. Of several, an earlier call may have taken another
        // than this one would: only the tags know.
        if candidates.len() > 1
            && let Some(disk) = self.find_disk(deadline, &new.name).await?
        {
            return self.adopt(deadline, disk, new).await;
        }
        let mut reasons = Vec::new();
        for candidate in &candidates {
            match self.try_candidate(deadline, new, candidate).await {
                Ok(disk) => return self.adopt_new(deadline, &disk, new).await,
                Err(Error::Cloud { source, .. }) if moves_on(&source) => {
                    tracing::info!(
                        volume.name = new.name,
                        zone = %candidate.zone,
                        category = %candidate.category,
                        cloud.code = source.code(),
                        cloud.request_id = source.request_id(),
                        "not to be had here, trying the next"
                    );
                    reasons.push(format!(
                        "{} in {}: {}",
                        candidate.category,
                        candidate.zone,
                        crate::base::chain::chain(&source)
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::OutOfStock {
            name: new.name.clone(),
            reasons: reasons.join("; "),
        })
    }

    /// The request with the source's size as its least.
    async fn sized_for_source(&self, deadline: Deadline, new: &NewDisk) -> Result<NewDisk> {
        let mut new = new.clone();
        let Some(id) = &new.snapshot else {
            return Ok(new);
        };
        let row = self.snapshots.look(id, deadline).await;
        let row = row.map_err(wait(format!("look at snapshot {id}")))?;
        let snapshot = row.ok_or_else(|| Error::NoSuchSnapshot {
            snapshot: id.clone(),
        })?;
        if !snapshot.available {
            return Err(Error::SnapshotNotReady {
                snapshot: id.clone(),
            });
        }
        let least = snapshot.source_size.bytes();
        if new.size.limit.is_some_and(|limit| limit < least) {
            let reasons = format!(
                "snapshot {id} needs {}, wanted {}",
                snapshot.source_size, new.size
            );
            return Err(Error::OutOfRange {
                name: new.name,
                reasons,
            });
        }
        let required: Bytes = new.size.required.unwrap_or_default().max(least);
        new.size = SizeRange {
            required: Some(required),
            limit: new.size.limit,
        };
        Ok(new)
    }

    async fn try_candidate(
        &self,
        deadline: Deadline,
        new: &NewDisk,
        candidate: &Candidate,
    ) -> Result<DiskId> {
        let step = || {
            format!(
                "create a {} disk in {} for {:?}",
                candidate.category, candidate.zone, new.name
            )
        };
        // Size and source stay out of the token: with other ones the cloud answers a mismatch, which
        // is how a name that is used twice shows.
        let (zone, category) = (candidate.zone.as_str(), candidate.category.as_str());
        let cluster = self.cluster.as_str();
        let token = ClientToken::derive("CreateDisk", [cluster, &new.name, zone, category]);
        let mut request = CreateDisk {
            zone: candidate.zone.clone(),
            category: candidate.category.clone(),
            performance_level: None,
            size: candidate.size,
            name: label::display_name(&new.name),
            snapshot: new.snapshot.clone(),
            encrypted: new.encrypted,
            kms_key: new.kms_key.clone(),
            tags: self.tags(&new.name),
            token,
        };
        let refused = match self.ecs.create_disk(deadline, &request).await {
            Err(error) if error.kind() == Kind::TokenMismatch => error,
            outcome => return outcome.map_err(cloud(step())),
        };
        tracing::info!(
            volume.name = new.name,
            cloud.request_id = refused.request_id(),
            "token was used before"
        );
        if let Some(disk) = self.find_lagging(deadline, &new.name).await? {
            return Ok(disk.id);
        }
        // A create that failed can use its token up. Nothing carries the name, so a token of the
        // whole request is safe.
        let (size, source) = (request.size.0.to_string(), new.snapshot.as_ref());
        let source = source.map_or("", SnapshotId::as_str);
        let key = new.kms_key.as_deref().unwrap_or_default();
        let parts = [cluster, &new.name, zone, category, &size, source, key];
        request.token = ClientToken::derive("CreateDisk", parts);
        self.ecs
            .create_disk(deadline, &request)
            .await
            .map_err(cloud(step()))
    }

    /// Looks for the name until the tag index has had time to catch up.
    async fn find_lagging(&self, deadline: Deadline, name: &str) -> Result<Option<Disk>> {
        for look in 0..LOOKS_FOR_LAGGING_TAGS {
            if let Some(disk) = self.find_disk(deadline, name).await? {
                return Ok(Some(disk));
            }
            let pause = std::time::Duration::from_millis(500) * (look + 1);
            let _ = deadline.bound(tokio::time::sleep(pause)).await;
        }
        Ok(None)
    }

    async fn adopt_new(&self, deadline: Deadline, disk: &DiskId, new: &NewDisk) -> Result<Disk> {
        let disk = self.wait_made(deadline, disk).await?;
        refuse_other(&disk, new)?;
        Ok(disk)
    }

    async fn adopt(&self, deadline: Deadline, disk: Disk, new: &NewDisk) -> Result<Disk> {
        refuse_other(&disk, new)?;
        if disk.status != DiskStatus::Creating {
            return Ok(disk);
        }
        self.wait_made(deadline, &disk.id).await
    }

    async fn wait_made(&self, deadline: Deadline, disk: &DiskId) -> Result<Disk> {
        let made = |seen: Seen<Disk>| match seen {
            Seen::Row(row) if row.status != DiskStatus::Creating => Some(Disk::clone(&row)),
            // Right after its creation a disk may not be listed yet.
            Seen::Row(_) | Seen::Nothing | Seen::Failed(_) => None,
        };
        let waited = self.disks.until(disk, deadline, made).await;
        waited.map_err(wait(format!("see disk {disk} become Available")))
    }
}

/// Whether another pair may succeed where this one was refused.
fn moves_on(error: &crate::cloud::Error) -> bool {
    error.kind() == Kind::OutOfStock
        || error
            .code()
            .is_some_and(|code| code.starts_with("QuotaExceed.DiskCapacity"))
}

fn refuse_other(disk: &Disk, new: &NewDisk) -> Result<()> {
    match compare::disk(disk, new) {
        None => Ok(()),
        Some(differences) => Err(Error::Exists {
            name: new.name.clone(),
            existing: format!("disk {}", disk.id),
            differences,
        }),
    }
}
