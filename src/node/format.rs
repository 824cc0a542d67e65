//! Making a filesystem: claim, proof, record, mkfs, flush, and the record is removed.

use super::journal::Journal;
use super::observe::{CallContext, quick};
use super::proof::{BlankProof, ProofHandoff};
use super::run::{StepContext, TOOL_TIMEOUT};
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
        context: StepContext<'_>,
        device: &Device,
        filesystem: Filesystem,
        tuning: &Tuning,
    ) -> Result<()> {
        let at = CallContext::new(context.volume, context.verb);
        let arguments = tuning.mkfs_arguments(filesystem);
        let arguments = arguments.map_err(|source| Error::Tuning {
            volume: context.volume.id.clone(),
            source,
        })?;
        let mut proof = match context.proof.and_then(ProofHandoff::take) {
            Some(proof) => proof,
            None => {
                let claim = self.host.claim(quick(), device).await;
                let claim = claim.map_err(at.failed())?;
                // Waiting for it took time.
                self.verify_device(context).await?;
                self.prove_again(context, device, claim).await?
            }
        };
        if !proof.is_valid() {
            proof = self
                .prove_again(context, device, proof.claim().clone())
                .await?;
        }
        self.begin_format(context.volume, device, filesystem, at)
            .await?;
        if !proof.is_valid() {
            // The record says that the disk was blank, and nobody has looked for a while.
            let again = self
                .prove_again(context, device, proof.claim().clone())
                .await;
            proof = match again {
                Ok(proof) => proof,
                Err(error) => {
                    self.forget_format(context.volume, at).await?;
                    return Err(error);
                }
            };
        }
        let command = filesystem::make(filesystem, &arguments, &device.path).holding(proof.claim());
        self.run_tool(context, "make the filesystem", &command)
            .await?;
        let flushed = self
            .host
            .flush_device(Deadline::after(TOOL_TIMEOUT), device)
            .await;
        flushed.map_err(at.failed())?;
        self.forget_format(context.volume, at).await
    }

    /// Looks again whether a claimed device is blank.
    async fn prove_again(
        &self,
        context: StepContext<'_>,
        device: &Device,
        claim: Claim,
    ) -> Result<BlankProof> {
        self.still(context, device, "blank", |content| {
            *content == Content::Blank
        })
        .await?;
        Ok(BlankProof::from_second_read(claim))
    }

    /// Makes a disk blank again on which a mkfs of ours was cut off. The record stays: a wipe that is cut off is
    /// begun anew.
    pub(super) async fn wipe(&self, context: StepContext<'_>, device: &Device) -> Result<()> {
        let at = CallContext::new(context.volume, context.verb);
        let claim = self
            .host
            .claim(quick(), device)
            .await
            .map_err(at.failed())?;
        self.still(context, device, "half formatted", is_half_made)
            .await?;
        if self.journal(context.volume, device, at).await? != Journal::Ours {
            return Err(at.failed()(HostError::Changed {
                device: device.path.clone(),
                reason: "the record of a mkfs that was cut off is gone".to_owned(),
            }));
        }
        tracing::warn!(
            disk.id = %context.volume.id,
            device = %device,
            "a mkfs was cut off on this disk, which had been proven blank; it is made blank again and formatted",
        );
        let wiped = self.host.wipe(Deadline::after(TOOL_TIMEOUT), device).await;
        drop(claim);
        wiped.map_err(at.failed())
    }

    /// The look that the plan was made with may be old, and what comes now overwrites what came since.
    async fn still(
        &self,
        context: StepContext<'_>,
        device: &Device,
        was: &str,
        is: impl Fn(&Content) -> bool + Send,
    ) -> Result<()> {
        let failed = CallContext::new(context.volume, context.verb).failed();
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
