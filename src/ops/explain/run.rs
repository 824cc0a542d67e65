//! `diskplugin explain`: what classes and claims do with this driver.

use std::time::Duration;

use anyhow::Context;
use ecs::{Client, DescribeStock};

use super::flags::Flags;
use super::manifest::{Manifest, read};
use super::object::explain;
use super::report::Outcome;
use super::settings::ExplainSettings;
use super::text::render;
use crate::base::Deadline;
use crate::cli::{InvalidSettings, Location, OutputFormat};
use crate::disk::candidates::RegionStock;
use crate::ops::{Connect, print};

/// Timeout of the queries of `--live` together.
const LIVE: Duration = Duration::from_secs(30);

/// Explains the objects of the files.
pub async fn run(args: Flags, connect: Connect) -> anyhow::Result<()> {
    let manifests = read_all(&args.files)?;
    let mut settings = ExplainSettings {
        driver: args.driver.driver_name,
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
    let all = explanation.objects.len();
    let count = |outcome| explanation.objects.iter().filter(|one| one.result == outcome).count();
    anyhow::ensure!(
        count(Outcome::Skipped) < all,
        "no object was explained: all were skipped"
    );
    let rejected = count(Outcome::Rejected);
    anyhow::ensure!(rejected == 0, "{rejected} of {all} objects would be rejected");
    Ok(())
}

fn read_all(files: &[String]) -> Result<Vec<Manifest>, InvalidSettings> {
    let (mut manifests, mut problems) = (Vec::new(), Vec::new());
    for file in files {
        let text = content(file).map_err(|error| format!("cannot read {file}: {error}"));
        match text.and_then(|text| read(file, &text)) {
            Ok(read) => manifests.extend(read),
            Err(problem) => problems.push(problem),
        }
    }
    match problems.is_empty() {
        true => Ok(manifests),
        false => Err(InvalidSettings(problems)),
    }
}

fn content(file: &str) -> std::io::Result<String> {
    match file {
        "-" => std::io::read_to_string(std::io::stdin()),
        file => std::fs::read_to_string(file),
    }
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
