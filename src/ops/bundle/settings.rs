//! The settings of the driver that hold no secret: all of its flags but few.

use clap::Command;

use super::pod::KnownSettings;

/// Of the fake cloud.
const SECRET: &[&str] = &["access-key-id", "access-key-secret"];

/// The programs of the image.
const PROGRAMS: [&str; 3] = ["/diskplugin", "/diskplugin-controller", "/diskplugin-node"];

/// The settings of all roles.
pub(super) fn settings(program: &Command) -> KnownSettings {
    let mut settings = KnownSettings::from(PROGRAMS.map(str::to_owned));
    for command in program.get_subcommands() {
        settings.insert(command.get_name().to_owned());
        add(command, &mut settings);
    }
    add(program, &mut settings);
    settings
}

fn add(command: &Command, settings: &mut KnownSettings) {
    for flag in command.get_arguments() {
        let name = flag.get_long().unwrap_or_default();
        if SECRET.contains(&name) {
            continue;
        }
        // A word after a switch is not its value.
        if flag.get_action().takes_values() {
            settings.insert(format!("--{name}"));
        }
        let variable = flag.get_env().and_then(|name| name.to_str());
        settings.extend(variable.map(|name| format!("${name}")));
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::app::Cli;

    #[test]
    fn flags_with_secrets_are_missing() {
        let settings = settings(&Cli::command());
        for name in [
            "--zone",
            "--log-level",
            "--rate-limits",
            "controller",
            "$DISKPLUGIN_ZONE",
        ] {
            assert!(settings.contains(name), "{name}");
        }
        // A new flag or variable with such a name is either a secret or an exception here.
        let exceptions = [
            "credentials",
            "credentials-dir",
            "http-tls-key-file",
            "metadata-token-only",
            "oidc-token-file",
            "token-file",
        ];
        let is_secret = |name: &&String| {
            let name = name.trim_start_matches("--").trim_start_matches("$DISKPLUGIN_");
            let name = name.to_lowercase().replace('_', "-");
            let words = ["secret", "password", "key", "token", "credential", "header"];
            words.iter().any(|word| name.contains(word)) && !exceptions.contains(&&*name)
        };
        assert_eq!(settings.iter().find(is_secret), None);
    }
}
