//! `packlight report` on logs whose truth is known: every figure is counted by hand here. The binary is the real one.

use std::path::Path;
use std::process::{Command, Output};

use packlight::decision::{Block, Called, Decision, Query, Saved, Scored, ToolTokens, Used};
use serde_json::{Value, json};

/// One request of a conversation. Prices of the test: 1 USD a token of prompt, so that sums can be done in the head.
fn request(conversation: &str, arm: &str, prompt: u64) -> Decision {
    Decision {
        ts: 1_796_044_800.0,
        conversation: conversation.into(),
        arm: arm.into(),
        upstream: "kimi".into(),
        model: "kimi-k3".into(),
        status: 200,
        legs: 1,
        usage: Some(Used { prompt, cached: prompt / 2, completion: 1 }),
        cost_usd: Some(prompt as f64),
        ..Decision::default()
    }
}

fn call(tool: &str, rank: Option<usize>, verdict: &str) -> Called {
    Called { name: tool.into(), verdict: verdict.into(), rank }
}

fn log(folder: &Path, name: &str, decisions: &[Decision]) -> String {
    let text: String = decisions.iter().map(|decision| decision.line() + "\n").collect();
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a log");
    path.to_str().expect("a path").to_owned()
}

fn report(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_packlight")).arg("report").args(arguments).output().expect("the binary runs")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&text(&report(&[arguments, &["--json"]].concat()))).expect("json")
}

/// 415 calls in shadow, three of them missed: two at rank 14, one in no ranking.
fn shadow() -> Vec<Decision> {
    let mut decisions = Vec::new();
    for n in 0..415usize {
        let mut decision = request(&format!("c{n}"), "shadow", 1000);
        let lang = if n % 5 == 0 { "ar" } else { "en" };
        decision.query = Some(Query { hash: format!("{n:016x}"), lang: Some(lang.into()), ..Query::default() });
        decision.selection = vec![Scored { name: "search".into(), score: 0.9 }];
        decision.block = Some(Block { hash: "b".into(), cause: Some("first".into()), tokens: 700 });
        decision.saved = Saved { tokens: 300, usd: Some(0.5) };
        decision.called = vec![match n {
            0 | 1 => call("send_invoice", Some(14), "withheld"),
            2 => call("export_all", None, "withheld"),
            _ => call("search", Some(n % 10 + 1), "bound"),
        }];
        decision.called.push(call("whoami", None, "bound"));
        decisions.push(decision);
    }
    decisions[0].roster.tool_tokens = vec![ToolTokens { name: "send_invoice".into(), tokens: 250, always: false }];
    decisions[1].query = Some(Query {
        hash: "feed".into(),
        lang: Some("ar".into()),
        text: Some("أرسل الفاتورة <script>alert(1)</script> \u{1b}[2J".into()),
        ..Query::default()
    });
    decisions
}

#[test]
fn the_promote_verdict_says_what_would_have_been_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path(), "shadow.jsonl", &shadow());
    let words = "at k=12, 412 of 415 calls would have been bound; the 3 misses: send_invoice 2x (rank 14), export_all 1x \
                 (not among the first 64); recommended k 10";
    let said = text(&report(&[&log]));
    assert!(said.contains("Recall in shadow: PROMOTE") && said.contains(words), "{said}");
    assert!(said.contains("415 calls of tools that are never withheld are not counted"), "{said}");
    assert!(said.contains("shadow: 124,500 tool tokens would have been saved (estimate), $207.50 net"), "{said}");
    assert!(!said.contains('\u{1b}'), "a message moved the cursor");

    let data = json(&[&log]);
    assert_eq!(data["recall"]["bound"], 412);
    assert_eq!(data["recall"]["verdict"], "promote");
    assert_eq!(data["recall"]["core_calls"], 415);
    assert_eq!(data["recall"]["missed"][0]["tool"], "send_invoice");
    assert_eq!(data["recall"]["missed"][0]["examples"][1]["query"], "feed");
    let english = data["recall"]["languages"].as_array().expect("a list").iter().find(|lang| lang["name"] == "en");
    // n = 0 and n = 1 are Arabic (the latter as planted), n = 2 is the English miss.
    assert_eq!(english.map(|lang| (lang["calls"].clone(), lang["bound"].clone())), Some((json!(331), json!(330))));
    assert_eq!(data["recall"]["curve"][13]["bound"], 414, "k = 14");

    let deep = (3..415u64).filter(|n| n % 10 + 1 > 8).count() as u64;
    assert_eq!(data["recall"]["curve"][7]["bound"], 412 - deep, "k = 8 holds no rank 9 and 10");
    // Of a sidecar that ran with 8 they were bound all the same: a block had kept them.
    assert_eq!(json(&[&log, "--k", "8"])["recall"]["bound"], 412);
}

#[test]
fn narrowed_conversations_are_compared_with_those_held_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut decisions = Vec::new();
    for n in 0..20 {
        let spread = u64::from(n % 2 == 0) * 10;
        for arm in ["narrow", "holdout"] {
            let prompt = if arm == "narrow" { 60 } else { 100 } + spread;
            decisions.push(request(&format!("{arm}{n}"), arm, prompt));
            decisions.push(request(&format!("{arm}{n}"), arm, prompt));
        }
        // A request that failed open counts with its conversation.
        let mut full = request(&format!("narrow{n}"), "bypass", 95 + spread);
        full.reason = "deadline".into();
        decisions.push(full);
    }
    let log = log(folder.path(), "live.jsonl", &decisions);
    let data = json(&[&log]);
    let [compared] = data["comparisons"].as_array().expect("a list").as_slice() else { panic!("{data}") };
    assert_eq!((&compared["narrow"], &compared["holdout"]), (&json!(20), &json!(20)));
    let whole = &compared["usd_per_conversation"];
    // 2 x 65 + 100 against 2 x 105, on average.
    assert_eq!((&whole["narrow"]["mean"], &whole["holdout"]["mean"]), (&json!(230.0), &json!(210.0)));
    assert!(whole["share"].as_f64().expect("a share") > 0.09, "a loss is shown as a loss: {whole}");
    let call = &compared["usd_per_call"];
    assert!((call["narrow"]["mean"].as_f64().expect("a mean") - 230.0 / 3.0).abs() < 1e-9, "{call}");
    assert_eq!(call["holdout"]["mean"], 105.0);
    let said = text(&report(&[&log]));
    assert!(said.contains("cost per conversation    $230.00 against $210.00: 9.5 % more"), "{said}");
    assert!(said.contains("deadline 20"), "{said}");
    assert!(said.contains("there is no recall"), "nothing was watched: {said}");
    assert_eq!(data["arms"][0]["cached"], 20 * 2 * 30 + 10 * 2 * 5);
}

#[test]
fn a_page_is_one_file_that_loads_and_runs_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut decisions = shadow();
    decisions[3].called.push(call("</bdi><img src=x onerror=alert(1)>", Some(70), "withheld"));
    decisions.push(Decision { saved: Saved { tokens: -5, usd: Some(-0.25) }, ..request("n", "narrow", 10) });
    let log = log(folder.path(), "a.jsonl", &decisions);
    let page = folder.path().join("report.html");
    text(&report(&[&log, "--html", page.to_str().expect("a path")]));
    let html = std::fs::read_to_string(page).expect("the page");
    for markup in ["<script", "<img", "src=\"", "href=\"", "url(", "@import", "http://", "https://", " style=\""] {
        assert!(!html.contains(markup), "{markup} in the page");
    }
    assert!(html.contains("default-src &#39;none&#39;; style-src &#39;sha256-"));
    assert!(html.contains("<p dir=\"auto\">أرسل الفاتورة &lt;script&gt;"));
    assert!(html.contains("<bdi>&lt;/bdi&gt;&lt;img src=x onerror=alert(1)&gt;</bdi>"));
    assert!(html.contains("−$0.25"), "a loss has its sign");
    assert!(html.contains("<svg") && html.contains("recommended"), "{html}");
}

#[test]
fn what_is_no_log_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = report(&["/nowhere/decisions.jsonl"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("/nowhere/decisions.jsonl: No such file"));
    let path = folder.path().join("other.jsonl");
    std::fs::write(&path, "{\"msg\":\"hello\"}\nplain\n").expect("a file");
    let other = report(&[path.to_str().expect("a path")]);
    assert_eq!(other.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&other.stdout).contains("2 lines are no record, the first is"));
    assert_eq!(report(&[]).status.code(), Some(64), "a log must be named");
}
