//! `packlight report` on logs whose truth is known: every figure is counted by hand here. The binary is the real one.

mod support;

use std::path::Path;
use std::process::{Command, Output};

use packlight::decision::{Block, Called, Decision, Query, Saved, Scored, ToolTokens, Used};
use serde_json::{Value, json};

use support::eventually;
use support::provider::Provider;
use support::received::Received;
use support::reply::Reply;
use support::roster;
use support::sidecar::{Builder, Sidecar};

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
    let asked = json(&[&log, "--k", "8"]);
    assert_eq!((&asked["recall"]["bound"], &asked["recall"]["served"]), (&json!(412 - deep), &json!(412)));
}

/// `auto`: each record says how many were selected, and what was bound far down the ranking is no proof of a small k.
#[test]
fn a_shadow_log_under_auto_is_told_as_it_was_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut decisions = shadow();
    for (n, decision) in decisions.iter_mut().enumerate() {
        decision.selected = Some(if n % 2 == 0 { 20 } else { 10 });
        if n >= 3 && n % 2 == 0 {
            decision.called[0].rank = Some(13 + n % 8);
        }
    }
    let deep = (3..415usize).filter(|n| n % 2 == 0).count();
    let log = log(folder.path(), "auto.jsonl", &decisions);
    let data = json(&[&log]);
    let recall = &data["recall"];
    assert_eq!(
        (&recall["bound"], &recall["served"], &recall["verdict"]),
        (&json!(412), &json!(412), &json!("promote"))
    );
    assert!(recall.get("k").is_none(), "not one number: {recall}");
    let words = recall["words"].as_str().expect("words");
    assert!(
        words.starts_with("with 15.0 tools selected on average, 412 of 415 calls would have been bound;"),
        "{words}"
    );
    assert_eq!(recall["curve"][11]["bound"], 412 - deep, "k = 12 holds nothing from rank 13 on");
    assert!(recall["curve"][0]["bound"].as_u64().is_some_and(|bound| bound < 100), "k = 1 is no better than it is");
    let asked = json(&[&log, "--k", "12"]);
    assert_eq!((&asked["recall"]["bound"], &asked["recall"]["verdict"]), (&json!(412 - deep), &json!("raise_k")));
    let said = text(&report(&[&log]));
    assert!(said.contains("as served") && !said.contains('*'), "{said}");
}

#[test]
fn shadow_that_chose_nothing_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let decisions: Vec<Decision> = (0..7)
        .map(|n| Decision {
            action: "shadow".into(),
            reason: "deadline".into(),
            called: vec![call("search", None, "bound")],
            ..request(&format!("c{n}"), "shadow", 10)
        })
        .collect();
    let log = log(folder.path(), "late.jsonl", &decisions);
    let said = text(&report(&[&log]));
    assert!(said.contains("nothing was chosen, by reason deadline 7") && said.contains("narrow.deadline"), "{said}");
    assert!(!said.contains("run with mode"), "{said}");
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

const KIMI: &str = "/kimi/v1/chat/completions";
const HELD: &str = "/held/v1/chat/completions";
const PRICES: &str = "[prices.\"*\"]\ninput = 3.0\ncached_input = 0.3\noutput = 15.0\n";
const WEATHER: &str = "Weather report: temperature, rain forecast.";

/// One upstream narrowed, one held out, a price for every model, and a log.
fn over(provider: &Provider, log: &Path) -> Builder {
    Sidecar::over(provider)
        .set("narrow.max_retrieved_tools", "3")
        .set("narrow.sticky_need", "1")
        .set("log.decisions", &format!("{:?}", log.display().to_string()))
        .upstream("held", &provider.url())
        .tail("narrow = { percent = 0 }\n")
        .tail(PRICES)
        .away()
}

/// Records as they stand in the log, when all of them do.
fn written(log: &Path, count: usize) -> Vec<Decision> {
    eventually("the log", || {
        let text = std::fs::read_to_string(log).ok()?;
        let records: Vec<Decision> = text.lines().filter_map(|line| Decision::read(line).ok()).collect();
        (records.len() == count).then_some(records)
    })
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn metrics_records_report_and_page_say_the_same() {
    let model = |received: &Received| {
        let tool = if received.asked().contains("astray") { "lock_door" } else { "get_weather" };
        // 500 uncached at 3, 700 cached at 0.30, 30 out at 15: 2,160 millionths of a dollar a call.
        Reply::call(tool, json!({"value": "x"})).usage(1200, 700, 30)
    };
    let provider = Provider::new().answer(model).start();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("decisions.jsonl");
    let sidecar = over(&provider, &path).start();
    let post = |path: &str, headers: &[(&str, &str)], text: &str| {
        let answer = sidecar.post_with(path, headers, &roster::ask(text).to_string());
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    let shadow = [("x-packlight-mode", "shadow")];
    post(KIMI, &[], WEATHER);
    post(KIMI, &[], &format!("{WEATHER} Again."));
    post(KIMI, &[], &format!("{WEATHER} And astray."));
    post(HELD, &[], WEATHER);
    post(HELD, &[], &format!("{WEATHER} Again."));
    post(KIMI, &shadow, WEATHER);
    post(KIMI, &shadow, &format!("{WEATHER} And astray."));

    let records = written(&path, 7);
    let metrics = sidecar.metrics();
    let data = json(&[path.to_str().expect("a path"), "--k", "3"]);
    let page = sidecar.admin("/").text();
    for (arm, calls) in [("narrow", 3.0), ("holdout", 2.0), ("shadow", 2.0)] {
        let of: Vec<&Decision> = records.iter().filter(|record| record.arm == arm).collect();
        let reported = data["arms"].as_array().expect("arms").iter().find(|one| one["arm"] == arm).expect("the arm");
        let number = |key: &str| reported[key].as_f64().expect("a number");
        assert_eq!((of.len() as f64, number("requests")), (calls, calls), "{arm}");
        let cost = calls * 0.002_160;
        assert!(near(of.iter().filter_map(|record| record.cost_usd).sum(), cost), "{arm}");
        assert!(near(metrics.value("packlight_cost_usd_total", &[("arm", arm)]), cost), "{arm}");
        assert!(near(number("cost_usd"), cost), "{arm}");
        assert!(
            page.contains(&format!("<td class=\"number \">${cost:.6}</td>")),
            "{arm}: {cost:.6} is not on the page"
        );
        for (kind, tokens) in [("cached", 700.0), ("uncached", 500.0)] {
            let labels = [("arm", arm), ("kind", kind)];
            assert_eq!(metrics.value("packlight_prompt_tokens_total", &labels), calls * tokens, "{arm} {kind}");
        }
        assert_eq!((number("prompt"), number("cached")), (calls * 1200.0, calls * 700.0), "{arm}");
        let saved: f64 = of.iter().filter_map(|record| record.saved.usd).sum();
        assert!(near(number("saved_usd"), saved), "{arm}");
        let series = match arm {
            "narrow" => "packlight_saved_usd_estimated_total",
            "shadow" => "packlight_shadow_saved_usd_estimated_total",
            _ => continue,
        };
        assert!(near(metrics.value(series, &[]), saved) && saved != 0.0, "{arm}: {saved}");
    }
    assert_eq!(
        data["recall"]["words"].as_str().map(|words| words.split(';').next()),
        Some(Some("at k=3, 1 of 2 calls would have been bound"))
    );
    assert_eq!(data["recall"]["missed"][0]["tool"], "lock_door");
    assert_eq!(metrics.value("packlight_called_tools_total", &[("arm", "shadow"), ("verdict", "withheld")]), 1.0);
    assert_eq!(metrics.value("packlight_shadow_calls_total", &[("tool", "lock_door"), ("verdict", "withheld")]), 1.0);
    assert_eq!(metrics.value("packlight_missed_tools_total", &[("tool", "lock_door")]), 2.0);
    // Four requests went in full, and the provider's 1,200 tokens for each are not what we estimate.
    let full = |record: &&Decision| record.arm != "narrow";
    let estimated: u64 = records.iter().filter(full).map(|record| record.history_tokens + record.roster.tokens).sum();
    let factor = 4.0 * 1200.0 / estimated as f64;
    assert_eq!(data["token_factors"][0][1]["requests"], 4);
    assert!(data["token_factors"][0][1]["factor"].as_f64().is_some_and(|reported| near(reported, factor)));
    assert!(near(metrics.value("packlight_token_factor", &[]), factor));
    let error = data["token_factors"][0][1]["error"].as_f64().expect("an error");
    assert!(near(metrics.value("packlight_token_factor_error", &[]), error) && error > 0.0 && error < 0.1, "{error}");
    assert!(page.contains(&format!("{factor:.3} \u{b1} {:.1} %, 4 requests, too few to be used", error * 100.0)));
    assert!(page.contains("50.0 %") && page.contains("1 of 2 calls would have been bound"));
    assert_eq!(page.matches("<details class=\"decision missed\"").count(), 2);
}

/// Each reply calls all tools, so of a message exactly as many calls are bound as tools were selected for it.
#[test]
fn under_auto_metrics_records_report_and_page_say_what_was_served() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/models/e5-small-q4.bin");
    if !Path::new(model).is_file() {
        let meant = std::env::var("PACKLIGHT_TEST_MODEL").is_ok_and(|said| said == "absent");
        assert!(meant, "no model at {model}: run `make model` (or set PACKLIGHT_TEST_MODEL=absent)");
        return;
    }
    let every = |_: &Received| {
        let all = roster::TOOLS.iter().map(|(name, _)| *name);
        all.fold(Reply::default(), |reply, name| reply.and_call(name, json!({"value": "x"})))
    };
    let provider = Provider::new().answer(every).start();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("decisions.jsonl");
    let sidecar = Sidecar::bare()
        .set("embeddings.provider", "\"builtin\"")
        .set("embeddings.model_path", &format!("{model:?}"))
        .set("log.decisions", &format!("{:?}", path.display().to_string()))
        .upstream("kimi", &provider.url())
        .start();
    let post = |mode: &str, text: &str| {
        let answer = sidecar.post_with(KIMI, &[("x-packlight-mode", mode)], &roster::ask(text).to_string());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.packlight("action")
    };
    let mut warming = 0;
    eventually("the roster is embedded", || {
        warming += 1;
        (post("narrow", "hello") == "narrowed").then_some(())
    });
    let messages = ["Lock the front door of the house", "Could you take care of it for me?", WEATHER];
    messages.iter().for_each(|text| assert_eq!(post("shadow", text), "shadow"));

    let records = written(&path, warming + messages.len());
    let selected: Vec<usize> = records
        .iter()
        .filter(|record| record.arm == "shadow")
        .map(|record| record.selected.expect("a choice"))
        .collect();
    let (served, calls) = (selected.iter().sum::<usize>(), messages.len() * roster::TOOLS.len());
    assert!(selected.iter().any(|one| *one > 12) && selected.iter().any(|one| *one != selected[0]), "{selected:?}");
    let verdict = |verdict: &str| {
        sidecar.metrics().value("packlight_called_tools_total", &[("arm", "shadow"), ("verdict", verdict)]) as usize
    };
    assert_eq!((verdict("bound"), verdict("withheld")), (served, calls - served));
    let data = json(&[path.to_str().expect("a path")]);
    let recall = &data["recall"];
    assert_eq!((&recall["calls"], &recall["bound"], &recall["k"]), (&json!(calls), &json!(served), &Value::Null));
    // A tool that `auto` bound at place 18 is no gift to smaller numbers.
    for k in [1, 8, 12, 20] {
        assert_eq!(recall["curve"][k - 1]["bound"], json!(messages.len() * k), "{k}");
    }
    assert!(sidecar.admin("/").text().contains(&format!("{served} of {calls} calls would have been bound")));
}

#[test]
fn narrowing_that_loses_money_is_shown_as_a_loss() {
    let provider = Provider::new().answer(|_| Reply::text("done").no_usage()).start();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("decisions.jsonl");
    // Chosen anew every turn: the block breaks the cache in front of a long history.
    let sidecar = over(&provider, &path).set("narrow.stability", "\"turn\"").start();
    let mut body = roster::ask("x");
    let rules: String = (0..1_500).map(|n| format!("Rule {n}: be kind, be brief. ")).collect();
    body["messages"] = json!([{"role": "system", "content": rules}]);
    let asks = [
        "weather rain forecast temperature",
        "wakes alarm clock time",
        "pizza toppings delivery",
        "garden valve plants water",
        "parcel shipping number",
    ];
    for ask in asks {
        let messages = body["messages"].as_array_mut().expect("messages");
        messages.push(json!({"role": "user", "content": ask}));
        let answer = sidecar.post(KIMI, &body.to_string());
        assert_eq!(answer.status, 200, "{}", answer.text());
        body["messages"].as_array_mut().expect("messages").push(json!({"role": "assistant", "content": "done"}));
    }
    let records = written(&path, asks.len());
    let saved: f64 = records.iter().filter_map(|record| record.saved.usd).sum();
    let tokens: i64 = records.iter().map(|record| record.saved.tokens).sum();
    assert!(tokens > 0 && saved < 0.0, "{tokens} tokens were left out, and {saved} USD were saved");
    assert!(near(sidecar.metrics().value("packlight_saved_usd_estimated_total", &[]), saved));
    let said = text(&report(&[path.to_str().expect("a path")]));
    assert!(said.contains(&format!("−${:.4} net of the prompt cache", -saved)), "{said}");
    let page = sidecar.admin("/").text();
    assert!(page.contains(&format!("<div class=\"value bad\">−${:.4}</div>", -saved)), "the first figure of the page");
}
