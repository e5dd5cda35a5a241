//! The arguments. NOT what they do.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use packlight::eval::gate::Gate;
use packlight::retrieval::width::Width;

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
    /// Say what each way of narrowing would have cost on recorded or made-up traffic, prompt cache simulated
    Replay(Replay),
    /// Forget which tools succeeded on which messages (`history = true`)
    History(History),
    /// Ask a running sidecar whether it is well (exit code 0 or 1; for a container's HEALTHCHECK)
    Health(Health),
    /// Learn from one's own requests which tools they need, and keep what was learnt if it helps
    Tune(Tune),
    /// Look for what makes a roster hard to search, and say what to do about it
    Lint(Lint),
    /// Show why a message gets the tools it gets
    Explain(Explain),
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
pub(crate) struct History {
    #[command(subcommand)]
    pub what: Past,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Past {
    /// Remove all of it from the shared store
    Clear {
        /// The configuration file of the sidecars: it names the store
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
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
    #[command(flatten)]
    pub asked: Asked,
    /// Show the curve of every set and language, and the number of tools it speaks for
    #[arg(long, value_name = "WHAT")]
    pub sweep: Option<Sweep>,
    /// Two configuration files: what the second gains and loses on the same cases, and whether that could be luck
    #[arg(long, value_name = "FILE", num_args = 2, conflicts_with_all = ["config", "sweep", "min"])]
    pub compare: Vec<PathBuf>,
    /// Fail below this: `recall@12=0.9,lang=ar` (or `all@5=…`, `mrr=…`, `selected=…`, `found=…`; `set=…`; `lang=each`,
    /// every language for itself, and `within=0.04`, none so far behind another); may be given several times
    #[arg(long, value_name = "GATE")]
    pub min: Vec<Gate>,
    /// Write a page with curves
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Succeed although tools have no case, descriptions are thin, or cases cannot fail
    #[arg(long)]
    pub allow_gaps: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Lint {
    #[command(flatten)]
    pub cases: Cases,
    /// Findings that do not count: thin, api-speak, formal, duplicate, draws, parameters
    #[arg(long, value_name = "KIND", num_args = 1..)]
    pub ignore: Vec<String>,
    #[command(flatten)]
    pub asked: Asked,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// What the user asks
    #[arg(value_name = "MESSAGE", required_unless_present = "messages", conflicts_with = "messages")]
    pub message: Option<String>,
    /// A dialogue: a JSON array of messages in OpenAI's form, the last of the user's is what is asked
    #[arg(long, value_name = "FILE")]
    pub messages: Option<PathBuf>,
    /// The roster: a `tools` array in OpenAI, Gemini, Anthropic or MCP form
    #[arg(long, value_name = "FILE")]
    pub catalog: PathBuf,
    /// A catalog file: categories, keywords, the core
    #[arg(long, value_name = "FILE")]
    pub overlay: Option<PathBuf>,
    /// What `tune` wrote; by default the one of the configuration
    #[arg(long, value_name = "FILE")]
    pub head: Option<PathBuf>,
    #[command(flatten)]
    pub asked: Asked,
}

#[derive(Debug, Args)]
pub(crate) struct Tune {
    /// Decision logs: a called tool is the label of the message it was called for. Their roster is `--catalog`
    #[arg(value_name = "LOG", required_unless_present_any = ["sets", "cases"])]
    pub logs: Vec<PathBuf>,
    #[command(flatten)]
    pub cases: Cases,
    /// Sets of `--sets` that are not learnt from, only measured
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub leave_out: Vec<String>,
    /// Where what was learnt is written
    #[arg(long, value_name = "FILE", default_value = "packlight.head")]
    pub out: PathBuf,
    /// Write it although nothing was gained
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub asked: Asked,
}

/// How the commands that rank do it, and for whom.
#[derive(Debug, Args)]
pub(crate) struct Asked {
    /// How many tools are selected, or `auto`; by default as many as are served
    #[arg(long, value_name = "NUMBER", value_parser = width)]
    pub k: Option<Width>,
    /// A configuration file: the embedder, the catalog, how many tools are selected
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// For a machine
    #[arg(long)]
    pub json: bool,
}

/// Of no tools at all there is nothing to say.
fn width(text: &str) -> Result<Width, String> {
    match text.parse()? {
        Width::Fixed(0) => Err("must be at least 1".to_owned()),
        width => Ok(width),
    }
}

/// Rosters and labelled requests for them.
#[derive(Debug, Args)]
pub(crate) struct Cases {
    /// The roster: a `tools` array in OpenAI, Gemini, Anthropic or MCP form. One for all cases, or one for each file of
    /// them in the same order, or none where a catalog.json stands beside them
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub catalog: Vec<PathBuf>,
    /// JSON lines of `id, lang, query | messages, expect[], tags, catalog`, or a folder with a cases.jsonl
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub cases: Vec<PathBuf>,
    /// TOML: a list of `[[set]]` with `name, catalog, overlay, cases = ["…"], langs, not_langs, tags, not_tags,
    /// part = "1/2", sample, tools`
    #[arg(long, value_name = "FILE")]
    pub sets: Option<PathBuf>,
    /// A catalog file: categories, keywords, the core
    #[arg(long, value_name = "FILE")]
    pub overlay: Option<PathBuf>,
    /// What `tune` wrote; by default the one of the configuration
    #[arg(long, value_name = "FILE")]
    pub head: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sweep {
    /// How many tools are selected
    K,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Logs that `log.decisions` wrote, rotated ones too
    #[arg(value_name = "LOG", required = true, num_args = 1..)]
    pub logs: Vec<PathBuf>,
    /// What recall would have been with this `max_retrieved_tools`; by default it is told as served
    #[arg(long, value_name = "NUMBER", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub k: Option<usize>,
    /// Write a page with charts to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// For a machine
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Logs that `log.decisions` wrote, or captured request bodies, one a line, in the order of time
    #[arg(value_name = "LOG", required_unless_present_any = ["synthetic", "grid"], num_args = 1..)]
    pub logs: Vec<PathBuf>,
    /// Made-up traffic instead, such as `turns=6,calls=8,roster=12000,bound=4700,system=1500,step=400,expansions=2,ratio=.10`
    /// (also core, found, needs, cache=on|off, conversations, pause); what is not said is turns=6, calls=8, expansions=0
    /// and the like. Without --model the price is made up: 1 USD per million tokens, cached ones by `ratio`
    #[arg(long, value_name = "KEY=NUMBER,…", conflicts_with_all = ["logs", "grid"])]
    pub synthetic: Option<String>,
    /// The model of made-up traffic, for its price, or of captured requests that name none (Gemini)
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Choose and play a policy for each of 3,000 shapes of traffic
    #[arg(long, conflicts_with = "logs")]
    pub grid: bool,
    /// A provider that does not cache
    #[arg(long)]
    pub no_cache: bool,
    /// The configuration of the sidecar: prices, limits
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
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
