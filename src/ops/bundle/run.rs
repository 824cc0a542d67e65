//! `diskplugin bundle`: one archive for a report of a defect.

use std::fs;
use std::io::{BufWriter, Write};

use anyhow::{Context, bail};
use clap::Command;
use serde_json::json;

use super::archive::{Archive, file_name};
use super::collect::collect;
use super::file::create;
use super::flags::Flags;
use super::pages::read_pages;
use super::settings::settings;
use crate::base::{Clock, SystemClock};
use crate::ops::{print, process_client};

/// Writes the archive. `program` has all flags of the driver. A signal drops the collection, which removes the partial
/// file.
///
/// # Errors
/// No source could be read, or the archive cannot be written.
pub async fn run(args: Flags, program: Command, stopped: impl Future<Output = ()>) -> anyhow::Result<()> {
    tokio::select! {
        outcome = write(&args, &program) => outcome,
        () = stopped => bail!("stopped by a signal; no archive was written"),
    }
}

async fn write(args: &Flags, program: &Command) -> anyhow::Result<()> {
    let token = args.processes.token()?;
    let (file, partial) = create(&args.out)?;
    let mut archive = Archive::new(BufWriter::new(file), SystemClock.now());
    match args.processes.url.is_empty() {
        true => collect(args, &settings(program), &mut archive).await?,
        false => read_urls(args, token.as_deref(), &mut archive).await?,
    }
    let (members, missing) = (archive.members.len(), archive.missing.iter());
    let missing: Vec<_> = missing.map(|(source, reason)| format!("{source}: {reason}")).collect();
    if members == 0 {
        bail!("no source could be read:\n  {}", missing.join("\n  "));
    }
    let own = json!({"diskplugin": env!("CARGO_PKG_VERSION"), "architecture": std::env::consts::ARCH});
    let written = archive.add("diskplugin.json", "this program", Ok(Some(format!("{own:#}"))));
    let finished = written.and_then(|()| archive.finish());
    let finished = finished.context("cannot write the archive")?;
    let file = finished.into_inner().context("cannot write the archive")?;
    let kept = file.sync_all().and_then(|()| fs::rename(&*partial, &args.out));
    kept.with_context(|| format!("cannot write {}", args.out.display()))?;
    let missing: String = missing.iter().map(|one| format!("\nnot included: {one}")).collect();
    print(format!("{}: {members} members{missing}", args.out.display()))
}

async fn read_urls(args: &Flags, token: Option<&str>, archive: &mut Archive<impl Write>) -> anyhow::Result<()> {
    for authority in &args.processes.url {
        let get = async |path: &str| {
            let page = process_client::get(authority, path, token).await;
            page.map_err(|error| format!("{error:#}"))
        };
        let source = format!("http://{authority}");
        for (name, source, page) in read_pages(&file_name(authority), &source, &args.volume, get).await {
            archive.add(&name, &source, page)?;
        }
    }
    Ok(())
}
