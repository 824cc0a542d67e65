//! The configuration file: `diskplugin config check`, and adopting changes while a role runs.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use comfy_table::{Table, presets};
use prometheus_client::metrics::gauge::Gauge;

use super::telemetry::LogFilter;
use crate::base::Tasks;
use crate::cli::{CheckConfig, ConfigFile, RELOADED, Reloaded};
use crate::cloud::rate_limit::RateLimiter;

/// Interval of reading the file. kubelet takes up to a minute to update the file of a ConfigMap.
const INTERVAL: Duration = Duration::from_secs(5);

/// What a change of the file changes in this process.
#[derive(Debug)]
pub(super) struct Reload {
    pub(super) log: LogFilter,
    /// None for a role that does not call the cloud.
    pub(super) rate_limiter: Option<Arc<RateLimiter>>,
}

/// Checks a file and prints its settings.
#[allow(clippy::unused_async, reason = "roles are futures")]
pub(super) async fn check(args: CheckConfig) -> anyhow::Result<()> {
    let file = ConfigFile::check(&args.file)?;
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["KEY", "VALUE", "CHANGES"]);
    for (key, value) in file.settings() {
        let is_reloaded = RELOADED.contains(&key);
        let changes = if is_reloaded {
            "adopted while running"
        } else {
            "need a restart"
        };
        table.add_row([key, &value, changes]);
    }
    let mut output = std::io::stdout().lock();
    let path = file.path().display();
    writeln!(
        output,
        "{path} is a valid configuration file of the role {}",
        file.role()
    )?;
    if !table.is_empty() {
        writeln!(output)?;
        for line in table.lines() {
            writeln!(output, "{}", line.trim_end().trim_start_matches(' '))?;
        }
    }
    Ok(())
}

impl Reload {
    /// Adopts changes of the file, as long as the process runs. Returns whether the last content was valid, as a metric;
    /// none without a file.
    pub(super) fn start(self, file: Option<ConfigFile>) -> Option<Gauge> {
        let file = file?;
        warn_overridden(&file, &file.overridden());
        if self.log.is_fixed() && file.settings().any(|(key, _)| key == "logLevel") {
            let path = file.path().display();
            tracing::warn!("logLevel in {path} has no effect: RUST_LOG is set");
        }
        let is_valid = Gauge::default();
        is_valid.set(1);
        let watch = self.watch(file, is_valid.clone());
        // Separate tasks: shutdown does not wait for it.
        Tasks::default().spawn(async { match watch.await {} });
        Some(is_valid)
    }

    async fn watch(self, mut file: ConfigFile, is_valid: Gauge) -> Infallible {
        let mut interval = tokio::time::interval(INTERVAL);
        let mut last = None;
        loop {
            interval.tick().await;
            let text = tokio::fs::read_to_string(file.path()).await;
            let text = text.map_err(|error| error.to_string());
            if last.as_ref() == Some(&text) {
                continue;
            }
            let is_first = last.is_none();
            let outcome = match &text {
                Ok(text) => file.reload(text).map_err(|error| error.to_string()),
                Err(error) => Err(format!("{} cannot be read: {error}", file.path().display())),
            };
            last = Some(text);
            is_valid.set(outcome.is_ok().into());
            match outcome {
                Ok(reloaded) => self.adopt(&file, reloaded, is_first),
                Err(error) => tracing::error!("the settings are unchanged: {error}"),
            }
        }
    }

    fn adopt(&self, file: &ConfigFile, reloaded: Reloaded, is_first: bool) {
        if !is_first {
            // At the level before the change: the new one may hide it.
            log_changes(file, &reloaded);
        }
        if let Some(level) = &reloaded.log_level {
            self.log.set(level.as_ref());
        }
        if let Some((limiter, limits)) = self.rate_limiter.as_ref().zip(reloaded.rate_limits) {
            limiter.configure(limits.into_iter().collect());
        }
    }
}

fn warn_overridden(file: &ConfigFile, keys: &[String]) {
    for key in keys {
        let path = file.path().display();
        tracing::warn!("{key} in {path} has no effect: its flag or environment variable is set");
    }
}

fn log_changes(file: &ConfigFile, reloaded: &Reloaded) {
    warn_overridden(file, &reloaded.overridden);
    let path = file.path().display();
    let keys = reloaded.after_restart.join(", ");
    if keys.is_empty() {
        tracing::info!("adopted the changes of {path}");
    } else {
        tracing::warn!("adopted the changes of {path}, except those that need a restart: {keys}");
    }
}
