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
    /// The roster: a `tools` array in OpenAI, Gemini, Anthropic or MCP form
    #[arg(long, value_name = "FILE")]
    pub catalog: PathBuf,
    /// JSON lines of `id, lang, query | messages, expect[], tags`
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub cases: Vec<PathBuf>,
    /// A catalog file: categories, keywords, the core
    #[arg(long, value_name = "FILE")]
    pub overlay: Option<PathBuf>,
    /// How many tools are selected; by default as many as are served
    #[arg(long, value_name = "NUMBER")]
    pub k: Option<usize>,
    /// A configuration file: the embedder
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// For a machine
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}
