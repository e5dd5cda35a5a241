//! The arguments. NOT what they do.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A sidecar that sends a model only the tools a message needs. Without a command: serve.
#[derive(Debug, Parser)]
#[command(name = "packlight", version, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub serve: Serve,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve agents (no file is needed: the defaults serve Kimi and Gemini)
    Serve(Serve),
    /// Say everything that is wrong with a configuration file
    Check(Check),
    /// See it at work: a scripted model, a CRM of 44 tools, no key
    Demo,
    /// Measure on labelled requests how often the selection holds the tools they need
    Eval(Eval),
    /// Say what decision logs come to: recall in shadow, savings against the holdout, what to change
    Report(Report),
    /// Ask a running sidecar whether it is well (exit code 0 or 1; for a container's HEALTHCHECK)
    Health(Health),
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// A configuration file; PACKLIGHT_SERVER__LISTEN and the like override it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Human text or JSON lines; by default text on a terminal and JSON elsewhere
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The configuration file
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    #[command(flatten)]
    pub cases: Cases,
    /// How many tools are selected; by default as many as are served
    #[arg(long, value_name = "NUMBER")]
    pub k: Option<usize>,
    /// A configuration file: the embedder, the catalog, how many tools are selected
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Succeed although tools have no case, descriptions are thin, or cases cannot fail
    #[arg(long)]
    pub allow_gaps: bool,
    /// For a machine
    #[arg(long)]
    pub json: bool,
}

/// Rosters and labelled requests for them.
#[derive(Debug, Args)]
pub(crate) struct Cases {
    /// The roster: a `tools` array in OpenAI, Gemini, Anthropic or MCP form. One for all cases, or one for each file of
    /// them in the same order, or none where a catalog.json stands beside them
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub catalog: Vec<PathBuf>,
    /// JSON lines of `id, lang, query | messages, expect[], tags, catalog`, or a folder with a cases.jsonl
    #[arg(long, value_name = "FILE", required_unless_present = "sets", num_args = 1..)]
    pub cases: Vec<PathBuf>,
    /// TOML: a list of `[[set]]` with `name, catalog, cases, langs, tags, sample, tools`
    #[arg(long, value_name = "FILE")]
    pub sets: Option<PathBuf>,
    /// A catalog file: categories, keywords, the core
    #[arg(long, value_name = "FILE")]
    pub overlay: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Logs that `log.decisions` wrote, rotated ones too
    #[arg(value_name = "LOG", required = true, num_args = 1..)]
    pub logs: Vec<PathBuf>,
    /// `max_retrieved_tools` of the sidecar that wrote them
    #[arg(long, value_name = "NUMBER", default_value_t = 12, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub k: usize,
    /// Write a page with charts to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// For a machine
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Health {
    /// The configuration of that sidecar: its admin_listen
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}
