//! Logs to stderr: ours at info, libraries at warn. Their more talkative levels print headers, hence keys, so a bare
//! `RUST_LOG=debug` is heard as ours; a library talks only when it is named (`RUST_LOG=hyper=debug`). NOT what is said.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::arguments::LogFormat;

/// Starts logging. `format`: by default text on a terminal and JSON elsewhere. `ours`: our level when `RUST_LOG` names
/// none.
pub(crate) fn start(format: Option<LogFormat>, ours: &str) {
    let terminal = std::io::stderr().is_terminal();
    let format = format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let filter = EnvFilter::builder().parse_lossy(directives(&wanted, ours));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => {
            let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            subscriber.with_ansi(colour).with_target(false).init();
        }
        LogFormat::Json => subscriber.json().flatten_event(true).with_target(false).with_current_span(false).init(),
    }
}

/// What `RUST_LOG` asks for, with a bare level turned into ours.
fn directives(wanted: &str, ours: &str) -> String {
    let mut directives = vec!["warn".to_owned(), format!("packlight={ours}")];
    for directive in wanted.split(',').map(str::trim).filter(|directive| !directive.is_empty()) {
        match directive.parse::<LevelFilter>() {
            Ok(level) => directives.push(format!("packlight={level}")),
            Err(_) => directives.push(directive.to_owned()),
        }
    }
    directives.join(",")
}

#[cfg(test)]
mod tests {
    use super::directives;

    #[test]
    fn a_bare_level_is_ours_and_a_library_must_be_named() {
        assert_eq!(directives("", "info"), "warn,packlight=info");
        assert_eq!(directives("trace", "info"), "warn,packlight=info,packlight=trace");
        assert_eq!(directives("debug, hyper=info", "info"), "warn,packlight=info,packlight=debug,hyper=info");
    }
}
