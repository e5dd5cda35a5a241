//! `report`: decision logs as text, JSON or one HTML file. NOT the counting: that is the library's.

use std::io::{self, IsTerminal};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use packlight::report::read;
use packlight::report::summary::Summary;
use packlight::report::tally::Tally;

use super::arguments::Report;
use super::failure::{self, Failure};

/// Reads the logs and says what they come to. Without one record it is no success: nothing was measured.
pub(crate) fn report(arguments: &Report) -> Result<(), Failure> {
    let failed = |error: read::ReadError| Failure::Run(format!("report: {error}"));
    let bar = bar(read::length(&arguments.logs));
    let mut tally = Tally::new(arguments.k);
    read::read(&arguments.logs, &mut tally, &mut |bytes| bar.inc(bytes)).map_err(failed)?;
    bar.finish_and_clear();
    let summary = Summary::of(&tally);
    if let Some(file) = &arguments.html {
        write(file, &summary.html())?;
    }
    failure::print(&if arguments.json { summary.json() + "\n" } else { summary.text() })?;
    if summary.records == 0 {
        return Err(Failure::Run("report: no record in these files (log.decisions names the log)".to_owned()));
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| Failure::Run(format!("report: {}: {error}", file.display())))
}

/// On stderr, and only for a person.
fn bar(length: u64) -> ProgressBar {
    let target = if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(length), target).with_style(style)
}
