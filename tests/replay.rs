//! What policies cost: the simulation against the figures that are known, the choice against the simulation.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use packlight::config::Config;
use packlight::cost::play::{Limits, Step, Tool};
use packlight::cost::policy::{ALL, Able, Policy, Traffic, estimate};
use packlight::decision::{Called, Decision, Roster, Scored, ToolTokens, Used};
use packlight::replay::captured::Captured;
use packlight::replay::findings::Findings;
use packlight::replay::grid::{self, Cell, Summary};
use packlight::replay::models::{Models, Settings};
use packlight::replay::synthetic::Synthetic;

const APPEND: Able = Able { append: true, dispatch: true };
const DISPATCH: Able = Able { append: false, dispatch: true };

/// Input cost against the full roster's, in percent.
fn change(traffic: Traffic, policy: Policy) -> f64 {
    let cost = |policy| Synthetic { traffic, ..Synthetic::default() }.play(policy).input.weighed(traffic.ratio);
    100.0 * (cost(policy) / cost(Policy::Full) - 1.0)
}

/// Six turns of eight calls, 12k of tools, 4.7k bound, 1.5k system, 400 a step: another simulation of the same, made
/// before this one, and what it said for three prices without and with two searches.
#[test]
fn the_known_table_comes_out() {
    let table: [(Policy, f64, [f64; 3]); 7] = [
        (Policy::EveryCall, 0.0, [421.0, 247.0, 723.0]),
        (Policy::EveryTurn, 0.0, [19.0, -0.4, 53.0]),
        (Policy::EveryTurn, 2.0, [39.0, 12.0, 85.0]),
        (Policy::Growing, 0.0, [-29.0, -30.0, -27.0]),
        (Policy::Growing, 2.0, [-4.0, -12.0, 10.0]),
        (Policy::Append, 0.0, [-29.0, -30.0, -27.0]),
        (Policy::Append, 2.0, [-22.0, -22.0, -20.0]),
    ];
    for (policy, expansions, known) in table {
        for (ratio, known) in [0.10, 0.168, 0.05].into_iter().zip(known) {
            let ours = change(Traffic { expansions, ratio, ..Traffic::default() }, policy);
            // Points, or a fiftieth of what is large.
            let room = f64::max(4.0, known.abs() / 50.0);
            assert!((ours - known).abs() < room, "{policy:?}, {expansions} searches, {ratio}: {ours:.1}, not {known}");
        }
    }
    for policy in [Policy::EveryCall, Policy::EveryTurn, Policy::Sticky, Policy::Append, Policy::Dispatch] {
        let ours = change(Traffic { ratio: 1.0, ..Traffic::default() }, policy);
        assert!(
            (-32.5..-25.0).contains(&ours),
            "without a cache every narrowing saves a quarter: {policy:?} {ours:.1}"
        );
    }
}

/// The formula that chooses, against the simulation that counts, on the policies that are carried out.
#[test]
fn the_estimate_is_near_the_simulation() {
    for (turns, calls, step) in [(2.0, 4.0, 400.0), (3.0, 5.0, 1600.0), (6.0, 8.0, 400.0), (12.0, 10.0, 100.0)] {
        for (expansions, needs) in [(0.0, 0.0), (2.0, 0.0), (0.0, 1.0)] {
            for ratio in [0.05, 0.168, 1.0] {
                let needs = if turns > 1.0 { needs } else { 0.0 };
                let traffic = Traffic { turns, calls, step, expansions, needs, ratio, ..Traffic::default() };
                for policy in [Policy::Append, Policy::Dispatch] {
                    let ours = 100.0 * (estimate(policy, &traffic) / estimate(Policy::Full, &traffic) - 1.0);
                    let played = change(traffic, policy);
                    assert!((ours - played).abs() < 5.0, "{policy:?} {traffic:?}: {ours:.1}, played {played:.1}");
                }
            }
        }
    }
}

/// What `auto` serves once it knows the traffic never costs over 2 % more than the full roster, the conversations that it
/// narrows only to learn from counted, and saves a fifth in the median cell: for models that take declarations, and for
/// those that do not. The first conversations, of which nothing is known, are narrowed: with append that loses where a few
/// requests search a lot and hardly anywhere else, with replace wherever there are searches in long histories.
#[test]
fn what_auto_serves_holds_on_the_grid() {
    let [append, dispatch] = grid::grid([APPEND, DISPATCH], || {});
    for (able, cells) in [(APPEND, append), (DISPATCH, dispatch)] {
        assert_eq!(cells.len() as u64, grid::shapes() * 6);
        let served = Summary::of(cells.iter().map(|cell| cell.served));
        assert!(served.worst <= 0.02 && served.losing == 0, "{able:?}: {served:?}");
        assert!(served.median <= -0.20, "{able:?}: {served:?}");
        assert!(served.chosen.contains_key("full"), "{served:?}");
        let first = |filter: fn(&&Cell) -> bool| Summary::of(cells.iter().filter(filter).map(|cell| cell.first));
        let all = first(|_| true);
        assert!(!all.chosen.contains_key("full") && !all.chosen.contains_key("dispatch"), "{able:?}: {all:?}");
        let calm = first(|cell| cell.traffic.expansions < 1.0);
        assert!(calm.losing == 0 && calm.median < -0.22, "{able:?}: {calm:?}");
        if able == APPEND {
            assert!(all.median <= -0.18 && all.losing * 10 < all.cells, "{all:?}");
            let cached = first(|cell| cell.cached);
            assert!(cached.losing * 50 < cached.cells && cached.worst < 0.12, "{cached:?}");
        }
        let long = |cell: &&Cell| cell.traffic.turns * cell.traffic.calls > 15.0 && cell.cached;
        let long = Summary::of(cells.iter().filter(long).map(|cell| cell.narrowed));
        assert!(long.worst < 0.04, "{able:?}: {long:?}");
    }
}

#[test]
fn what_is_wrong_with_a_description_of_traffic_is_said() {
    let wrong = |text: &str| Synthetic::read(text).expect_err("wrong").to_string();
    assert_eq!(wrong("turns"), "`turns` is no `key=number`, such as turns=6");
    assert_eq!(wrong("cache=maybe"), "`cache=maybe` is no `key=number`, such as turns=6");
    assert_eq!(wrong("turns=0"), "turns must be between 1 and 1000");
    assert!(wrong("speed=1").starts_with("there is no `speed`, only turns, calls,"));
    let read = Synthetic::read("turns=2, calls=3,cache=off,ratio=.05").expect("traffic");
    assert_eq!((read.traffic.turns, read.traffic.ratio, read.steps().len()), (2.0, 1.0, 6));
}

/// A log of made-up traffic comes to what the traffic itself comes to; what is no record is counted and passed over.
#[tokio::test]
async fn a_log_is_played_as_what_it_is_a_log_of() {
    let traffic = Traffic { expansions: 2.0, needs: 1.0, ..Traffic::default() };
    let synthetic = Synthetic { traffic, conversations: 2, ..Synthetic::default() };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("decisions.jsonl");
    let mut file = std::fs::File::create(&path).expect("a file");
    let mut call = 0;
    for (number, step) in synthetic.steps().iter().enumerate() {
        call = if step.begins_turn { 1 } else { call + 1 };
        writeln!(file, "{}", record(step, number == 0, call).line()).expect("written");
    }
    writeln!(file, "not a record\n\n{}", Decision { ts: 1.0, ..Decision::default() }.line()).expect("written");
    drop(file);

    let findings = Findings::of(&played(&path).await);
    assert_eq!((findings.unreadable, findings.passed.untouched), (1, 1));
    let model = findings.models.first().expect("one model");
    assert_eq!((model.model.as_str(), model.requests, model.conversations), ("kimi-k3", 96, 2));
    for (row, policy) in model.policies.iter().zip(ALL) {
        let sum = synthetic.play(policy);
        assert_eq!((row.prompt_tokens, row.extra_legs), (sum.input.prompt, sum.extra_legs), "{policy:?}");
        assert_eq!(row.cached_tokens, sum.input.cached, "{policy:?}");
        let dollars = row.usd.expect("a price");
        assert!((dollars - 3e-6 * row.weighed_tokens).abs() < 0.02, "{policy:?}: output is little here, {dollars}");
    }
    assert_eq!((model.cheapest, model.auto), ("append", "append"));
    let shape = model.shape;
    assert!((shape.turns - 6.0).abs() < 1e-9 && (shape.growth_tokens - 400.0).abs() < 1.0, "{shape:?}");
    assert!(findings.text().contains("Use append for this traffic: binding = \"append\""), "{}", findings.text());
    let page = findings.html();
    assert!(page.contains("<svg") && page.contains("prefers-color-scheme: dark") && !page.contains("http:"), "{page}");
    let json: serde_json::Value = serde_json::from_str(&findings.json()).expect("JSON");
    assert_eq!(json.pointer("/models/0/policies/0/policy"), Some(&serde_json::json!("full")));
}

/// What a record says was selected is what is bound, whatever the limits say.
#[tokio::test]
async fn a_log_is_played_with_as_many_tools_as_were_selected() {
    let tools = (0..30).map(|n| ToolTokens { name: format!("t{n}"), tokens: 100, always: false }).collect();
    let mut decision = Decision {
        ts: 1.0,
        conversation: "c".into(),
        turn: 1,
        call: 1,
        model: "kimi-k3".into(),
        status: 200,
        history_tokens: 1000,
        roster: Roster { hash: "r".into(), find_tools_tokens: 50, tool_tokens: tools, ..Roster::default() },
        selection: (0..20).map(|n| Scored { name: format!("t{n}"), score: 0.5 }).collect(),
        ..Decision::default()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("decisions.jsonl");
    for (selected, bound) in [(Some(18), 18), (None, 12)] {
        decision.selected = selected;
        std::fs::write(&path, decision.line() + "\n").expect("written");
        let findings = Findings::of(&played(&path).await);
        let model = &findings.models[0];
        let sticky = model.policies.iter().find(|row| row.policy == Policy::Sticky.label()).expect("a row");
        assert_eq!(sticky.prompt_tokens, 100 * bound + 50 + 1000, "{selected:?}");
        assert_eq!(model.shape.bound_tokens, (100 * bound + 50) as f64, "{selected:?}");
    }
}

/// Bodies as an agent sent them: what a reply called stands in the next.
#[tokio::test]
async fn captured_requests_are_played_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bodies.jsonl");
    let tools = r#"[{"type":"function","function":{"name":"a","description":"Opens the door","parameters":{}}}]"#;
    let user = r#"{"role":"user","content":"open the door"}"#;
    let call =
        r#"{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}}]}"#;
    let answer = r#"{"role":"tool","tool_call_id":"1","content":"done"}"#;
    let body = |messages: &str| format!(r#"{{"model":"kimi-k2.6","tools":{tools},"messages":[{messages}]}}"#);
    let bodies = format!("{}\n{}\n{{}}\n", body(user), body(&format!("{user},{call},{answer}")));
    std::fs::write(&path, bodies).expect("written");
    let findings = Findings::of(&played(&path).await);
    let model = findings.models.first().expect("one model");
    assert_eq!((model.model.as_str(), model.requests, model.conversations), ("kimi-k2.6", 2, 1));
    assert_eq!((model.shape.turns, model.shape.calls, findings.unreadable), (1.0, 2.0, 1));
    assert_eq!(model.cheapest, "full", "one tool: nothing to narrow");
}

#[test]
fn the_command_says_which_policy_to_use() {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_packlight"));
        let output = command.arg("replay").args(arguments).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, text) = run(&["--synthetic", "expansions=2", "--model", "gemini-2.5-flash"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("Use dispatch for this traffic: binding = \"dispatch\""), "{text}");
    let (code, text) = run(&["--synthetic", "turns=none"]);
    let wrong = "packlight: replay: --synthetic: `turns=none` is no `key=number`, such as turns=6\n";
    assert_eq!((code, text.as_str()), (Some(1), wrong));
    assert_eq!(run(&["/nowhere.jsonl"]).0, Some(1));
    assert_eq!(run(&[]).0, Some(64));
}

#[test]
fn a_provider_that_keeps_no_prefix_is_told_from_the_simulated_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.jsonl");
    let tools = |n: u64| Tool { id: n, tokens: 300, always: false };
    let roster = Arc::new(packlight::cost::play::Roster { tools: (0..30).map(tools).collect(), find_tools: 200 });
    let says = |cached: u64| {
        let lines: Vec<String> = (1..=8)
            .map(|call| {
                let step = Step {
                    at: Duration::from_secs(call),
                    history: 500 * call,
                    roster: Arc::clone(&roster),
                    ranking: if call == 1 { (0..30).collect() } else { Vec::new() },
                    ..Step::default()
                };
                let usage = Some(Used { prompt: 10_000, cached, completion: 10 });
                Decision { usage, ..record(&step, call == 1, call as usize) }.line()
            })
            .collect();
        std::fs::write(&path, lines.join("\n")).expect("written");
        let output = Command::new(env!("CARGO_BIN_EXE_packlight")).arg("replay").arg(&path).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).contains("See --no-cache before you follow")
    };
    assert!(says(0));
    assert!(!says(9_000));
}

async fn played(path: &Path) -> Models {
    let config = Config::default();
    let mut models = Models::new(Settings {
        prices: config.prices.clone(),
        limits: Limits::default(),
        cached: true,
        life: None,
        append: Box::new(|model| model.starts_with("kimi-k3")),
    });
    let mut captured = Captured::new(&config.narrow, "", Box::new(|| panic!("nothing here is ranked")));
    models.log(path, &mut captured, &mut |_| {}).await.expect("read");
    models
}

fn record(step: &Step, first: bool, call: usize) -> Decision {
    let name = |id: &u64| format!("t{id}");
    let sizes = |tool: &Tool| ToolTokens { name: name(&tool.id), tokens: tool.tokens, always: tool.always };
    Decision {
        ts: 1.0 + step.at.as_secs_f64(),
        conversation: format!("c{}", step.conversation),
        turn: 1,
        call,
        model: "kimi-k3".to_owned(),
        status: 200,
        history_tokens: step.history,
        roster: Roster {
            hash: "r".to_owned(),
            find_tools_tokens: step.roster.find_tools,
            tool_tokens: if first { step.roster.tools.iter().map(sizes).collect() } else { Vec::new() },
            ..Roster::default()
        },
        selection: step.ranking.iter().map(|id| Scored { name: name(id), score: 0.5 }).collect(),
        called: step.called.iter().map(|id| Called { name: name(id), ..Called::default() }).collect(),
        ..Decision::default()
    }
}
