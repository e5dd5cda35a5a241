//! Every series: name, help, labels and buckets side by side, and `record(&Outcome)`. NOT a counter named elsewhere. Labels
//! are enums or configured names; `model` and `tool` come from outside and are bounded to their first 100 values.

mod names;
mod series;

use prometheus::{CounterVec, GaugeVec, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry};

use self::names::{Names, OTHER};
use self::series::{counter, gauge, histogram, register};
use crate::cost::correction::Correction;
use crate::outcome::{Action, Outcome, Verdict};

/// Every series of the admin port.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    roster_tools: HistogramVec,
    bound_tools: HistogramVec,
    tool_tokens: IntCounterVec,
    prompt_tokens: IntCounterVec,
    completion_tokens: IntCounterVec,
    cost_usd: CounterVec,
    saved_usd: GaugeVec,
    shadow_saved_tokens: GaugeVec,
    shadow_saved_usd: GaugeVec,
    select_seconds: HistogramVec,
    overhead_seconds: HistogramVec,
    find_tools: IntCounterVec,
    legs: IntCounterVec,
    called_tools: IntCounterVec,
    missed_tools: IntCounterVec,
    shadow_calls: IntCounterVec,
    block_changes: IntCounterVec,
    append_refused: IntCounterVec,
    vectors: IntCounterVec,
    store_errors: IntCounterVec,
    upstream_responses: IntCounterVec,
    lost_records: IntCounter,
    file_broken: IntGaugeVec,
    token_factor: GaugeVec,
    token_factor_error: GaugeVec,
    models: Names,
    tools: Names,
}

/// What is kept where it is made, as it stands.
#[derive(Debug, Default)]
pub struct Kept {
    /// Vectors by result.
    pub vectors: Vec<(&'static str, u64)>,
    /// Failed operations of the store.
    pub store: Vec<(&'static str, u64)>,
    /// Decision records that were lost.
    pub lost: u64,
    pub files: Vec<File>,
}

/// A configured file that is read again when it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// `catalog`, `head`.
    pub kind: &'static str,
    /// Of the catalog, of the upstream.
    pub name: String,
    /// It is gone or was not what it should be at the last look: the version before is used on.
    pub broken: bool,
}

impl Metrics {
    /// All series, none of them fed. Fails only if two have one name.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let build =
            IntGaugeVec::new(Opts::new("packlight_build_info", "Always 1; the labels say what runs."), &["version"])?;
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        registry.register(Box::new(build))?;
        let seconds = prometheus::exponential_buckets(0.000_05, 2.5, 13)?;
        let counts = vec![1., 2., 4., 8., 12., 16., 20., 24., 32., 48., 64., 96., 128., 192., 256., 512.];
        Ok(Self {
            requests: counter(
                &registry,
                "packlight_requests_total",
                "Chat requests by what was done with them and, when not narrowed, why.",
                &["upstream", "wire", "action", "reason"],
            )?,
            roster_tools: histogram(
                &registry,
                "packlight_roster_tools",
                "Tools that agents sent, per chat request.",
                &["upstream"],
                counts.clone(),
            )?,
            bound_tools: histogram(
                &registry,
                "packlight_bound_tools",
                "Tools that the model was sent, find_tools not counted, per narrowed request.",
                &["upstream"],
                counts,
            )?,
            tool_tokens: counter(
                &registry,
                "packlight_tool_tokens_estimated_total",
                "Estimated tokens of the tools in narrowed requests: as sent by the agent (roster) and on (bound).",
                &["upstream", "model", "set"],
            )?,
            prompt_tokens: counter(
                &registry,
                "packlight_prompt_tokens_total",
                "Input tokens as the provider reports them, all legs.",
                &["upstream", "model", "arm", "kind"],
            )?,
            completion_tokens: counter(
                &registry,
                "packlight_completion_tokens_total",
                "Output tokens as the provider reports them, all legs.",
                &["upstream", "model", "arm"],
            )?,
            cost_usd: register(
                &registry,
                CounterVec::new(
                    Opts::new(
                        "packlight_cost_usd_total",
                        "What the reported tokens cost by the configured prices, in USD; models without a price are missing.",
                    ),
                    &["upstream", "model", "arm"],
                )?,
            )?,
            saved_usd: gauge(
                &registry,
                "packlight_saved_usd_estimated_total",
                "Estimated USD that narrowing saved, net of prompt cache and searches; falls where it lost.",
                &["upstream", "model"],
            )?,
            shadow_saved_tokens: gauge(
                &registry,
                "packlight_shadow_saved_tokens_estimated_total",
                "Estimated tokens of tools that narrowing would not have sent, in shadow.",
                &["upstream", "model"],
            )?,
            shadow_saved_usd: gauge(
                &registry,
                "packlight_shadow_saved_usd_estimated_total",
                "Estimated USD that narrowing would have saved, in shadow, net of prompt cache and searches; falls where it would have lost.",
                &["upstream", "model"],
            )?,
            select_seconds: histogram(
                &registry,
                "packlight_select_seconds",
                "Time to choose tools: embed (query vectors), rank, total.",
                &["stage"],
                seconds.clone(),
            )?,
            overhead_seconds: histogram(
                &registry,
                "packlight_overhead_seconds",
                "Time between the end of a chat request's body and the call of its upstream.",
                &["upstream"],
                seconds,
            )?,
            find_tools: counter(
                &registry,
                "packlight_find_tools_total",
                "Calls of find_tools by what they came to.",
                &["outcome"],
            )?,
            legs: counter(&registry, "packlight_legs_total", "Upstream calls made for chat requests.", &["upstream"])?,
            called_tools: counter(
                &registry,
                "packlight_called_tools_total",
                "Tools that models called, by group and by whether they had been sent (in shadow: would have been).",
                &["arm", "verdict"],
            )?,
            shadow_calls: counter(
                &registry,
                "packlight_shadow_calls_total",
                "Calls in shadow by tool, and whether it would have been bound or a search would have been needed (withheld).",
                &["tool", "verdict"],
            )?,
            missed_tools: counter(
                &registry,
                "packlight_missed_tools_total",
                "Calls of tools that had been withheld and not found by a search; in shadow: would have been withheld.",
                &["tool"],
            )?,
            block_changes: counter(
                &registry,
                "packlight_block_changes_total",
                "Blocks that differ from the one of the request before, by cause.",
                &["cause"],
            )?,
            append_refused: counter(
                &registry,
                "packlight_append_refused_total",
                "Requests whose tools in messages the provider refused; they went on with replace.",
                &["upstream", "model"],
            )?,
            vectors: counter(
                &registry,
                "packlight_vectors_total",
                "Vectors asked for: found in memory, on disk or in the store (hit), built, failed.",
                &["result"],
            )?,
            store_errors: counter(
                &registry,
                "packlight_store_errors_total",
                "Store operations that failed and were treated as a miss.",
                &["op"],
            )?,
            upstream_responses: counter(
                &registry,
                "packlight_upstream_responses_total",
                "Replies of upstreams to chat requests, by status; 0: none came.",
                &["upstream", "code"],
            )?,
            lost_records: register(
                &registry,
                IntCounter::new("packlight_lost_records_total", "Decision records that the disk did not take.")?,
            )?,
            file_broken: register(
                &registry,
                IntGaugeVec::new(
                    Opts::new(
                        "packlight_file_broken",
                        "1 while a catalog or head cannot be read, or is gone, and its version before is used on; else 0.",
                    ),
                    &["kind", "name"],
                )?,
            )?,
            token_factor: gauge(
                &registry,
                "packlight_token_factor",
                "Prompt tokens that the provider reports for one that is estimated, learnt from requests sent in full.",
                &["model"],
            )?,
            token_factor_error: gauge(
                &registry,
                "packlight_token_factor_error",
                "Error of an estimate times packlight_token_factor: root mean square, as a part of the mean prompt.",
                &["model"],
            )?,
            models: Names::default(),
            tools: Names::default(),
            registry,
        })
    }

    /// Counts one request.
    pub fn record(&self, outcome: &Outcome) {
        let upstream = outcome.upstream.as_str();
        let model = self.models.bounded(&outcome.model);
        let (action, arm) = (outcome.action.label(), outcome.arm());
        self.requests.with_label_values(&[upstream, outcome.wire, action, outcome.reason]).inc();
        if outcome.roster > 0 {
            self.roster_tools.with_label_values(&[upstream]).observe(outcome.roster as f64);
        }
        if outcome.action == Action::Narrowed {
            self.bound_tools.with_label_values(&[upstream]).observe(outcome.bound.len() as f64);
        }
        if let Some(cost) = outcome.cost_usd {
            self.cost_usd.with_label_values(&[upstream, &model, arm]).inc_by(cost.max(0.0));
        }
        if outcome.usage.reported {
            let usage = outcome.usage;
            let uncached = usage.prompt.saturating_sub(usage.cached);
            self.prompt_tokens.with_label_values(&[upstream, &model, arm, "uncached"]).inc_by(uncached);
            self.prompt_tokens.with_label_values(&[upstream, &model, arm, "cached"]).inc_by(usage.cached);
            self.completion_tokens.with_label_values(&[upstream, &model, arm]).inc_by(usage.completion);
        }
        for (stage, time) in [("embed", outcome.embed), ("rank", outcome.rank)] {
            if let Some(time) = time {
                self.select_seconds.with_label_values(&[stage]).observe(time.as_secs_f64());
            }
        }
        if let (Some(embed), Some(rank)) = (outcome.embed, outcome.rank) {
            self.select_seconds.with_label_values(&["total"]).observe((embed + rank).as_secs_f64());
        }
        self.overhead_seconds.with_label_values(&[upstream]).observe(outcome.overhead.as_secs_f64());
        for search in &outcome.searches {
            self.find_tools.with_label_values(&[search.label()]).inc();
        }
        self.legs.with_label_values(&[upstream]).inc_by(outcome.legs as u64);
        for call in &outcome.called {
            self.called_tools.with_label_values(&[arm, call.verdict.label()]).inc();
            if call.verdict == Verdict::Withheld || outcome.action == Action::Shadow {
                let tool = self.tools.bounded(&call.name);
                if call.verdict == Verdict::Withheld {
                    self.missed_tools.with_label_values(&[tool.as_str()]).inc();
                }
                if outcome.action == Action::Shadow {
                    self.shadow_calls.with_label_values(&[tool.as_str(), call.verdict.label()]).inc();
                }
            }
        }
        for cause in &outcome.causes {
            self.block_changes.with_label_values(&[cause.label()]).inc();
        }
        if outcome.append_refused {
            self.append_refused.with_label_values(&[upstream, &model]).inc();
        }
        let status = match outcome.status {
            status @ (0 | 100..=599) => status.to_string(),
            _ => "other".to_owned(),
        };
        self.upstream_responses.with_label_values(&[upstream, &status]).inc();
    }

    /// Adds the estimates for one request, which take arithmetic and come later.
    pub fn estimated(&self, outcome: &Outcome) {
        if !outcome.chose() {
            return;
        }
        let (upstream, model) = (outcome.upstream.as_str(), self.models.bounded(&outcome.model));
        let saved = if outcome.action == Action::Narrowed {
            self.tool_tokens.with_label_values(&[upstream, &model, "roster"]).inc_by(outcome.roster_tokens);
            self.tool_tokens.with_label_values(&[upstream, &model, "bound"]).inc_by(outcome.bound_tokens);
            &self.saved_usd
        } else {
            self.shadow_saved_tokens.with_label_values(&[upstream, &model]).add(outcome.saved_tokens() as f64);
            &self.shadow_saved_usd
        };
        if let Some(usd) = outcome.saved_usd {
            saved.with_label_values(&[upstream, &model]).add(usd);
        }
    }

    /// What is known by now of the tokens of a model.
    pub fn corrected(&self, model: &str, correction: &Correction) {
        let model = self.models.bounded(model);
        // Models that are counted as one have no factor in common.
        if model != OTHER {
            self.token_factor.with_label_values(&[model.as_str()]).set(correction.factor);
            self.token_factor_error.with_label_values(&[model.as_str()]).set(correction.error);
        }
    }

    /// The series as they stand.
    pub fn registry(&self, kept: &Kept) -> &Registry {
        self.lost_records.inc_by(kept.lost.saturating_sub(self.lost_records.get()));
        for (result, total) in &kept.vectors {
            raise(&self.vectors, result, *total);
        }
        for (op, total) in &kept.store {
            raise(&self.store_errors, op, *total);
        }
        for File { kind, name, broken } in &kept.files {
            self.file_broken.with_label_values(&[kind, name.as_str()]).set(i64::from(*broken));
        }
        &self.registry
    }
}

/// Brings a counter up to a total that is kept elsewhere.
fn raise(counter: &IntCounterVec, label: &str, total: u64) {
    let counter = counter.with_label_values(&[label]);
    counter.inc_by(total.saturating_sub(counter.get()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Call;

    #[test]
    fn hostile_names_end_in_other() {
        let metrics = Metrics::new().expect("series");
        for n in 0..250 {
            let called = vec![Call { name: format!("tool{n}"), verdict: Verdict::Withheld, rank: None }];
            let model = format!("model{n}{}", "x".repeat(300));
            let usage = crate::wire::reply::Usage { reported: true, prompt: 3, cached: 1, completion: 1 };
            metrics.record(&Outcome {
                upstream: "kimi".into(),
                wire: "openai",
                model,
                called,
                usage,
                ..Outcome::default()
            });
        }
        let families = metrics.registry(&Kept { vectors: vec![("hit", 3)], ..Kept::default() }).gather();
        let text = prometheus::TextEncoder::new().encode_to_string(&families).expect("text");
        assert!(text.contains("packlight_missed_tools_total{tool=\"other\"} 150"));
        assert_eq!(text.lines().filter(|line| line.starts_with("packlight_missed_tools_total{")).count(), 101);
        assert_eq!(text.lines().filter(|line| line.starts_with("packlight_completion_tokens_total{")).count(), 101);
        assert!(text.contains("packlight_vectors_total{result=\"hit\"} 3"));
    }
}
