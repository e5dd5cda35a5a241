//! Why a command did not end well: what a person reads, whole, and the exit code. NOT where it is printed.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

/// `EX_USAGE`: the arguments or the settings are wrong.
pub(crate) const WRONG: u8 = 64;

/// Why a command did not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The settings: everything that is wrong with them.
    Settings { file: String, problems: Vec<String> },
    /// Anything else.
    Run(String),
}

impl Failure {
    /// `file`: `None` when there is none.
    pub(crate) fn settings(file: Option<&Path>, problems: Vec<String>) -> Self {
        let file = file.map_or_else(|| "environment".to_owned(), |file| file.display().to_string());
        Self::Settings { file, problems }
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Settings { .. } => WRONG,
            Self::Run(_) => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings { file, problems } => {
                let (count, noun) = (problems.len(), if problems.len() == 1 { "problem" } else { "problems" });
                write!(f, "packlight: {file}: {count} {noun}")?;
                problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
            Self::Run(text) => write!(f, "packlight: {text}"),
        }
    }
}

/// Prints for people. A reader that has seen enough (`| head`) is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Run(format!("cannot print: {error}"))),
        _ => Ok(()),
    }
}
