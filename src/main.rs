//! Arguments in, exit code out: 0 all went well, 1 it did not, 64 the arguments or the settings are wrong.
//! NOT a command (`command/`), NOT a decision about a request.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::exit,
    reason = "what goes wrong is said in words, with an exit code"
)]
#![deny(clippy::print_stdout, clippy::print_stderr, reason = "`println!` dies of a closed pipe: `failure::print`")]

mod command;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use command::arguments::{Arguments, Command};
use command::{demo, eval, explain, failure, health, history, lint, replay, report, serve, tune};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors; clap sends them to stdout. A closed pipe is its reader's choice.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(failure::WRONG) } else { ExitCode::SUCCESS };
        }
    };
    let ended = match arguments.command {
        None => serve::serve(&arguments.serve),
        Some(Command::Serve(arguments)) => serve::serve(&arguments),
        Some(Command::Check(arguments)) => serve::check(&arguments.file),
        Some(Command::Demo) => demo::demo(),
        Some(Command::Eval(arguments)) => eval::eval(arguments),
        Some(Command::Replay(arguments)) => replay::replay(&arguments),
        Some(Command::Report(arguments)) => report::report(&arguments),
        Some(Command::History(arguments)) => history::history(&arguments),
        Some(Command::Health(arguments)) => health::health(arguments.config.as_deref()),
        Some(Command::Tune(arguments)) => tune::tune(arguments),
        Some(Command::Lint(arguments)) => lint::lint(&arguments),
        Some(Command::Explain(arguments)) => explain::explain(&arguments),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(io::stderr(), "{failure}");
            ExitCode::from(failure.code())
        }
    }
}
