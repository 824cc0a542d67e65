//! The values of flags for endpoints.

use std::ffi::OsStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};

use ecs::server::Server;

/// Checks URLs of endpoints. clap's own error would repeat the value, which can contain a password.
#[derive(Debug, Clone, Copy)]
pub(super) struct Url;

impl TypedValueParser for Url {
    type Value = String;

    fn parse_ref(&self, command: &Command, flag: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        let text = value.to_string_lossy().into_owned();
        let Err(error) = text.parse::<Server>() else {
            return Ok(text);
        };
        let flag = flag.map(|flag| format!(" for '{flag}'"));
        let message = format!("invalid value{}: {error}", flag.unwrap_or_default());
        Err(Error::raw(ErrorKind::ValueValidation, message).with_cmd(command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_flag_and_contains_no_password() {
        let flag = Arg::new("endpoint").long("ecs-endpoint").value_parser(Url);
        let command = Command::new("test").arg(flag);
        let parse = |value: &str| {
            let args = ["test", "--ecs-endpoint", value];
            command.clone().try_get_matches_from(args)
        };
        assert!(parse("http://127.0.0.1:8480").is_ok());
        let error = parse("http://me:hidden@127.0.0.1").unwrap_err().to_string();
        assert!(error.contains("'--ecs-endpoint <endpoint>'"), "{error}");
        assert!(
            error.contains("http://127.0.0.1") && !error.contains("hidden"),
            "{error}"
        );
    }
}
