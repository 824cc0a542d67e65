//! Making a filesystem: claim, proof, record, mkfs, flush, and the record is removed.

use super::journal::Journal;
use super::observe::{Quick, quick};
use super::proof::{Handed, Proof};
use super::run::{LONG, Subject};
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::filesystem;
use crate::host::{Claim, Content, Device, HostError};
use crate::model::{Filesystem, Tuning};

impl Node {
    /// Makes the filesystem on a device that is proven blank, once more where that was a while ago. The claim keeps
    /// out a mkfs that an earlier run of the node began, and lasts as long as ours does.
    pub(super) async fn format(
        &self,
        subject: Subject<'_>,
        device: &Device,
        filesystem: Filesystem,
        tuning: &Tuning,
    ) -> Result<()> {
        let at = Quick::new(subject.volume, subject.verb);
        let arguments = tuning.mkfs_arguments(filesystem);
        let arguments = arguments.map_err(|source| Error::Tuning {
            volume: subject.volume.id.clone(),
            source,
        })?;
        let mut proof = match subject.proof.and_then(Handed::take) {
            Some(proof) => proof,
            None => {
                let claim = self.host.claim(quick(), device).await;
                let claim = claim.map_err(at.failed())?;
                // Waiting for it took time.
                self.same_device(subject).await?;
                self.prove_again(subject, device, claim).await?
            }
        };
        if !proof.is_fresh() {
            proof = self
                .prove_again(subject, device, proof.claim().clone())
                .await?;
        }
        self.begin_format(subject.volume, device, filesystem, at)
            .await?;
        if !proof.is_fresh() {
            // The record says that the disk was blank, and nobody has looked for a while.
            let again = self
                .prove_again(subject, device, proof.claim().clone())
                .await;
            proof = match again {
                Ok(proof) => proof,
                Err(error) => {
                    self.forget_format(subject.volume, at).await?;
                    return Err(error);
                }
            };
        }
        let command = filesystem::make(filesystem, &arguments, &device.path).holding(proof.claim());
        self.tool(subject, "make the filesystem", &command).await?;
        let flushed = self.host.flush_device(Deadline::after(LONG), device).await;
        flushed.map_err(at.failed())?;
        self.forget_format(subject.volume, at).await
    }

    /// Looks again whether a claimed device is blank.
    async fn prove_again(
        &self,
        subject: Subject<'_>,
        device: &Device,
        claim: Claim,
    ) -> Result<Proof> {
        self.still(subject, device, "blank", |content| {
            *content == Content::Blank
        })
        .await?;
        Ok(Proof::now(claim))
    }

    /// Makes a disk blank again on which a mkfs of ours was cut off. The record stays: a wipe that is cut off is
    /// begun anew.
    pub(super) async fn wipe(&self, subject: Subject<'_>, device: &Device) -> Result<()> {
        let at = Quick::new(subject.volume, subject.verb);
        let claim = self
            .host
            .claim(quick(), device)
            .await
            .map_err(at.failed())?;
        self.still(subject, device, "half formatted", is_half_made)
            .await?;
        if self.journal(subject.volume, device, at).await? != Journal::Ours {
            return Err(at.failed()(HostError::Changed {
                device: device.path.clone(),
                reason: "the record of a mkfs that was cut off is gone".to_owned(),
            }));
        }
        tracing::warn!(
            disk.id = %subject.volume.id,
            device = %device,
            "a mkfs was cut off on this disk, which had been proven blank; it is made blank again and formatted",
        );
        let wiped = self.host.wipe(Deadline::after(LONG), device).await;
        drop(claim);
        wiped.map_err(at.failed())
    }

    /// The look that the plan was made with may be old, and what comes now overwrites what came since.
    async fn still(
        &self,
        subject: Subject<'_>,
        device: &Device,
        was: &str,
        is: impl Fn(&Content) -> bool + Send,
    ) -> Result<()> {
        let failed = Quick::new(subject.volume, subject.verb).failed();
        let error = match self.host.content(quick(), device).await {
            Ok(content) if is(&content) => return Ok(()),
            Ok(content) => HostError::Changed {
                device: device.path.clone(),
                reason: format!("it was {was}, now it holds {content}"),
            },
            Err(error) => error,
        };
        Err::<(), Error>(failed(error))
    }
}

/// Whether a mkfs that was cut off may have left it.
pub(super) fn is_half_made(content: &Content) -> bool {
    match content {
        Content::Unfinished { .. } | Content::Unknown { .. } => true,
        Content::Blank | Content::Filesystem { .. } | Content::Foreign { .. } => false,
    }
}
