//! `diskplugin explain`: what classes and claims do with this driver.

use std::io::Read;
use std::time::Duration;

use anyhow::Context;
use ecs::{Client, DescribeStock};

use super::flags::Flags;
use super::manifest::{Manifest, read};
use super::object::explain;
use super::report::{Explained, Outcome};
use super::settings::ExplainSettings;
use super::text::render;
use crate::base::{Deadline, error_chain};
use crate::cli::{InvalidSettings, Location, OutputFormat};
use crate::disk::candidates::RegionStock;
use crate::ops::{Connect, print};

/// Timeout of the queries of `--live` together.
const LIVE: Duration = Duration::from_secs(30);

/// Explains the objects of the files.
pub async fn run(args: Flags, connect: Connect) -> anyhow::Result<()> {
    let manifests = read_all(&args.files)?;
    let mut settings = ExplainSettings {
        driver: args.driver_name,
        size: args.size,
        region: args.location.region.clone(),
        zone: args.location.zone.clone(),
        stock: RegionStock::default(),
    };
    if args.live {
        let mut location = Location::new(&args.location);
        let Some(region) = location.region().await else {
            return Err(location.into_error().into());
        };
        let client = connect(args.cloud, args.location.metadata()?, &region)?;
        settings.stock = stock(&client.ecs).await?;
        settings.region = Some(region);
    }
    let explanation = explain(&manifests, &settings);
    print(match args.output {
        OutputFormat::Table => render(&explanation),
        OutputFormat::Json => serde_json::to_string_pretty(&explanation)?,
    })?;
    let is_skipped = |one: &Explained| one.result == Outcome::Skipped;
    anyhow::ensure!(
        !explanation.objects.iter().all(is_skipped),
        "no object was explained: all were skipped"
    );
    let (rejected, all) = (explanation.rejected(), explanation.objects.len());
    anyhow::ensure!(rejected == 0, "{rejected} of {all} objects would be rejected");
    Ok(())
}

fn read_all(files: &[String]) -> Result<Vec<Manifest>, InvalidSettings> {
    let (mut manifests, mut problems) = (Vec::new(), Vec::new());
    for file in files {
        match content(file) {
            Err(error) => problems.push(format!("cannot read {file}: {error}")),
            Ok(text) => match read(file, &text) {
                Ok(read) => manifests.extend(read),
                Err(error) => problems.push(error_chain(&error)),
            },
        }
    }
    match problems.is_empty() {
        true => Ok(manifests),
        false => Err(InvalidSettings(problems)),
    }
}

fn content(file: &str) -> std::io::Result<String> {
    if file != "-" {
        return std::fs::read_to_string(file);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

/// The query of the driver: of all zones, and of the region for regional categories.
async fn stock(ecs: &Client) -> anyhow::Result<RegionStock> {
    let deadline = Deadline::after(LIVE);
    let query = async |regional| {
        let query = DescribeStock {
            regional,
            ..DescribeStock::default()
        };
        let stock = ecs.describe_available_resource(deadline, &query).await;
        stock.context("cannot query the stock; without --live, no cloud is called")
    };
    Ok(RegionStock {
        zonal: Some(query(false).await?),
        regional: Some(query(true).await?),
    })
}
