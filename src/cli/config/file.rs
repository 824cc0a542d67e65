//! A configuration file that a process has read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use serde_json::Value;

use super::document::{self, Settings};
use super::flags::{self, Flag};
use super::{InvalidConfig, KINDS, RELOADED};
use crate::cli::{Cli, LogLevel};
use crate::cloud::rate_limit::ConfiguredLimit;

/// The configuration file of this process, which can be read again.
#[derive(Debug)]
pub struct ConfigFile {
    path: PathBuf,
    /// The command line of the role.
    role: Command,
    settings: Settings,
    /// The settings with which the process has started.
    started: Settings,
    /// Keys of all flags that are on the command line or in the environment.
    given: BTreeSet<String>,
}

/// What a process adopts from a changed file.
#[derive(Debug, PartialEq)]
pub struct Reloaded {
    /// None if the command line or the environment determines it. An absent setting has its default.
    pub log_level: Option<Option<LogLevel>>,
    /// None if the command line or the environment determines it, or if the role has no rate limits.
    pub rate_limits: Option<Vec<ConfiguredLimit>>,
    /// Keys of settings that differ from those of the start, and need a restart.
    pub after_restart: Vec<String>,
    /// Keys of new settings that the command line or the environment overrides.
    pub overridden: Vec<String>,
}

impl ConfigFile {
    /// Reads a file for this role, or for the role of its kind if there are several.
    pub(super) fn read(
        path: &Path,
        roles: &[&Command],
    ) -> Result<(Self, Vec<Flag>), InvalidConfig> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| invalid(path, vec![format!("cannot be read: {error}")]))?;
        let (role, settings, flags) =
            parse(&text, roles).map_err(|problems| invalid(path, problems))?;
        let file = Self {
            path: path.to_owned(),
            role,
            started: settings.clone(),
            settings,
            given: BTreeSet::new(),
        };
        Ok((file, flags))
    }

    /// Checks a file for the role of its kind.
    ///
    /// # Errors
    /// Everything that is wrong with the file.
    pub fn check(path: &Path) -> Result<Self, InvalidConfig> {
        let mut command = Cli::command();
        command.build();
        let roles: Vec<_> = command.get_subcommands().collect();
        let (file, _) = Self::read(path, &roles)?;
        Ok(file)
    }

    /// The role that reads the file.
    #[must_use]
    pub fn role(&self) -> &str {
        self.role.get_name()
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The keys and values of the file, in the order of the keys.
    pub fn settings(&self) -> impl Iterator<Item = (&str, String)> {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let settings = self.settings.iter();
        settings.map(move |(key, value)| (key.as_str(), text(value)))
    }

    /// Keys of settings that have no effect, because the command line or the environment overrides them.
    #[must_use]
    pub fn overridden(&self) -> Vec<String> {
        self.overridden_of(&self.settings)
    }

    fn overridden_of(&self, settings: &Settings) -> Vec<String> {
        let keys = settings.keys().filter(|key| !self.is_effective(key));
        keys.cloned().collect()
    }

    pub(super) fn override_with(&mut self, given: BTreeSet<String>) {
        self.given = given;
    }

    /// Whether neither the command line nor the environment has the flag of this key.
    pub(super) fn is_effective(&self, key: &str) -> bool {
        !self.given.contains(key)
    }

    /// Adopts the new content of the file.
    ///
    /// # Errors
    /// The problems of the content; the process keeps its settings.
    pub fn reload(&mut self, text: &str) -> Result<Reloaded, InvalidConfig> {
        let roles = [&self.role];
        let (role, settings, flags) =
            parse(text, &roles).map_err(|problems| invalid(&self.path, problems))?;
        let args = flags.into_iter().flat_map(|flag| flag.args);
        // The values have been checked; relations to flags of the command line are not visible here.
        let matches = flags::without_environment(&role).ignore_errors(true);
        let matches = matches.try_get_matches_from(args).unwrap_or_default();
        let has_limits = flags::allowed(&role).any(|arg| flags::key(arg) == "rateLimits");
        let limits = || {
            let limits = matches.try_get_many("rate_limits").ok().flatten();
            limits.map(|limits| limits.copied().collect())
        };
        let level = || matches.try_get_one("log_level").ok().flatten().cloned();
        let after_restart = changed(&self.started, &settings)
            .filter(|key| !RELOADED.contains(key) && self.is_effective(key))
            .map(str::to_owned)
            .collect();
        let mut overridden = self.overridden_of(&settings);
        overridden.retain(|key| !self.settings.contains_key(key));
        let reloaded = Reloaded {
            log_level: self.is_effective("logLevel").then(level),
            rate_limits: (has_limits && self.is_effective("rateLimits"))
                .then(|| limits().unwrap_or_default()),
            after_restart,
            overridden,
        };
        self.settings = settings;
        Ok(reloaded)
    }
}

/// The keys whose values differ.
fn changed<'a>(before: &'a Settings, after: &'a Settings) -> impl Iterator<Item = &'a str> {
    let keys = before
        .keys()
        .chain(after.keys().filter(|key| !before.contains_key(*key)));
    keys.filter(|key| before.get(*key) != after.get(*key))
        .map(String::as_str)
}

fn parse(text: &str, roles: &[&Command]) -> Result<(Command, Settings, Vec<Flag>), Vec<String>> {
    let (name, settings) = document::parse(text)?;
    let Some(role) = roles.iter().find(|role| role.get_name() == name) else {
        let allowed = KINDS.iter().filter(|(_, name)| {
            let mut roles = roles.iter();
            roles.any(|role| role.get_name() == *name)
        });
        let allowed: Vec<_> = allowed.map(|(kind, _)| *kind).collect();
        let allowed = allowed.join(", ");
        return Err(vec![format!(
            "kind: is that of the role {name}; allowed: {allowed}"
        )]);
    };
    let flags = flags::flags(role, &settings)?;
    Ok(((*role).clone(), settings, flags))
}

fn invalid(path: &Path, problems: Vec<String>) -> InvalidConfig {
    InvalidConfig {
        path: path.to_owned(),
        problems,
    }
}
