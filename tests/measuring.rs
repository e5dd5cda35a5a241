//! `packlight eval`, `lint`, `explain` and `tune` as a person or a CI job runs them: files in, text, JSON, pages and exit
//! codes out. Vectors are hashed words from the scripted provider, so the figures mean nothing; that they are told does.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use support::eventually;
use support::provider::Provider;
use support::reply::Reply;
use support::sidecar::Sidecar;

/// Twelve tools; people have a word of their own for each of the first six, which no tool knows.
const TOOLS: [(&str, &str); 12] = [
    ("send_mail", "Send an electronic letter to somebody with a subject and a body"),
    ("delete_record", "Remove one record of a customer from the archive for good"),
    ("get_weather", "Tell the forecast of rain and heat for a place and a day"),
    ("book_room", "Reserve a conference room in the building for an hour"),
    ("pay_invoice", "Transfer money to a supplier for what was delivered"),
    ("play_song", "Start music of an artist on the speakers at home"),
    ("list_records", "Show every record of customers that matches some filter"),
    ("rename_file", "Give a document on the drive another title"),
    ("translate", "Turn a text into another language, word by word"),
    ("set_alarm", "Ring a bell at some time in the morning"),
    ("order_food", "Have a meal brought from a restaurant nearby"),
    ("thin", "Do it"),
];
const WORDS: [&str; 6] = ["flibber", "grommle", "snozzle", "quandor", "wizzlem", "brankle"];

struct Bench {
    folder: tempfile::TempDir,
    provider: Provider,
}

struct Ran {
    code: i32,
    out: String,
    errors: String,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().expect("folder"), provider: Provider::new().start() };
        let tools: Vec<Value> = TOOLS
            .iter()
            .map(|(name, description)| json!({"type": "function", "function": {"name": name, "description": description}}))
            .collect();
        bench.write("catalog.json", &json!(tools).to_string());
        let config = format!(
            "[narrow]\nmax_retrieved_tools = 3\n[embeddings]\nprovider = \"openai\"\nmodel = \"bag-of-words\"\nurl = \"{}/v1\"\ntimeout = \"20s\"\ncache_dir = {:?}\n",
            bench.provider.url(),
            bench.folder.path().join("cache"),
        );
        bench.write("config.toml", &config);
        bench
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).expect("written");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).expect("there")
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_packlight"));
        command.args(arguments).current_dir(self.folder.path()).env("XDG_CACHE_HOME", self.folder.path());
        // No model file may back the scripted embedder.
        let output = command.output().expect("the binary runs");
        Ran {
            code: output.status.code().expect("an exit code"),
            out: String::from_utf8(output.stdout).expect("text"),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn json(&self, arguments: &[&str], code: i32) -> Value {
        let ran = self.run(arguments);
        assert_eq!(ran.code, code, "{}\n{}", ran.out, ran.errors);
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
    }

    fn has(&self, name: &str) -> bool {
        Path::exists(&self.folder.path().join(name))
    }
}

fn case(lang: &str, query: &str, expect: &str) -> String {
    json!({"id": query, "lang": lang, "query": query, "expect": [expect]}).to_string() + "\n"
}

/// Requests in words that tools know, in two languages, one of them a dialogue.
fn plain_cases() -> String {
    let mut lines = case("en", "send a letter to somebody about the subject", "send_mail");
    lines += &case("en", "rain and heat forecast for this place", "get_weather");
    lines += &case("tr", "reserve the conference room for an hour", "book_room");
    lines += &case("tr", "something that nobody understands", "order_food");
    let messages = json!([
        {"role": "user", "content": "start some music of that artist"},
        {"role": "assistant", "content": "On the speakers at home?"},
        {"role": "user", "content": "yes"},
    ]);
    lines + &json!({"id": "nod", "lang": "en", "messages": messages, "expect": ["play_song"]}).to_string() + "\n"
}

/// Requests that a roster cannot understand but can learn; `label(i)`: the tool of request i.
fn strange_cases(label: &dyn Fn(usize) -> usize) -> String {
    let line = |i: usize| {
        let word = WORDS[i % 6];
        let query = format!("please {word} number{i} thing{} now", i / 6);
        case(if i % 12 < 6 { "en" } else { "tr" }, &query, TOOLS[label(i)].0)
    };
    (0..180).map(line).collect()
}

#[test]
fn figures_pages_gates_and_a_second_run_without_embedding() {
    let bench = Bench::new();
    bench.write("cases.jsonl", &plain_cases());
    let base = ["eval", "--config", "config.toml", "--cases", "cases.jsonl"];
    let with = |more: &[&'static str]| [&base[..], more].concat();

    let ran = bench.run(&with(&[]));
    assert_eq!(ran.code, 1, "tools without cases and a thin description are gaps: {}", ran.out);
    assert!(ran.errors.contains("--allow-gaps"), "{}", ran.errors);
    assert!(ran.out.contains("tr \"something that nobody understands\" -> order_food"), "{}", ran.out);
    assert!(ran.out.contains("FAIL: these descriptions are thin:\n  thin: 2 words"), "{}", ran.out);
    let asked = bench.provider.embedded().len();

    let report = bench.json(&with(&["--json", "--sweep", "k", "--allow-gaps"]), 0);
    assert_eq!(bench.provider.embedded().len(), asked, "the second run embeds nothing");
    let languages = report["report"]["sets"][0]["languages"].as_array().expect("languages").clone();
    let langs: Vec<&str> = languages.iter().filter_map(|language| language["lang"].as_str()).collect();
    assert_eq!(langs, ["en", "tr", "all"]);
    assert_eq!(languages[0]["figures"]["selected"]["share"], 1.0, "the nod is read with what it follows");
    assert!(languages[2]["figures"]["selected"]["low"].as_f64() < languages[2]["figures"]["selected"]["high"].as_f64());
    assert!(report["sweep"][2]["recommended"].as_u64().is_some_and(|k| k >= 1), "{report}");

    let ran = bench.run(&with(&[
        "--html",
        "page.html",
        "--min",
        "recall@3=1,lang=en",
        "--min",
        "all@3=0.6,lang=tr",
        "--allow-gaps",
    ]));
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(
        ran.out.contains("ok ") && ran.out.contains("FAIL ") && ran.errors.contains("--min"),
        "{}{}",
        ran.out,
        ran.errors
    );
    let page = bench.read("page.html");
    assert!(page.contains("<svg") && page.contains("something that nobody understands"), "{page}");
    assert_eq!(bench.run(&with(&["--min", "recall@3=1,lang=en", "--allow-gaps"])).code, 0);
    assert_eq!(bench.run(&with(&["--min", "recall=1"])).code, 64);
}

#[test]
fn two_configurations_are_compared_case_by_case() {
    let bench = Bench::new();
    bench.write("cases.jsonl", &plain_cases());
    bench.write("wide.toml", &bench.read("config.toml").replace("max_retrieved_tools = 3", "max_retrieved_tools = 12"));
    let compare = ["eval", "--cases", "cases.jsonl", "--compare", "config.toml", "wide.toml", "--json"];
    let compared = bench.json(&compare, 0);
    let all = compared["compared"].as_array().and_then(|rows| rows.last()).expect("rows").clone();
    assert_eq!(
        (all["cases"].as_u64(), all["gained"].as_u64(), all["lost"].as_u64()),
        (Some(5), Some(1), Some(0)),
        "{all}"
    );
    assert_eq!(all["second"], 1.0);
    assert_eq!(all["p"], 1.0, "one case proves nothing");
}

#[test]
fn a_file_of_sets_is_measured_as_one() {
    let bench = Bench::new();
    bench.write("cases.jsonl", &plain_cases());
    let sets = "[[set]]\nname = \"english\"\ncases = [\"cases.jsonl\"]\nlangs = [\"en\"]\n[[set]]\nname = \"turkish\"\ncases = [\"cases.jsonl\"]\nlangs = [\"tr\"]\n";
    bench.write("sets.toml", sets);
    let report = bench.json(&["eval", "--config", "config.toml", "--sets", "sets.toml", "--json", "--allow-gaps"], 0);
    assert_eq!(report["report"]["mean"]["selected"], 0.75, "{report}");
    let ran = bench.run(&["eval", "--config", "config.toml"]);
    assert!(ran.code == 1 && ran.errors.contains("--cases or --sets"), "{}", ran.errors);
}

#[test]
fn a_roster_is_told_what_is_wrong_with_it() {
    let bench = Bench::new();
    bench.write("cases.jsonl", &strange_cases(&|i| i % 6));
    let findings = bench.json(&["lint", "--config", "config.toml", "--catalog", "catalog.json", "--json"], 1);
    let kinds: Vec<(&str, &str)> = findings
        .as_array()
        .expect("findings")
        .iter()
        .map(|finding| (finding["tool"].as_str().unwrap_or_default(), finding["kind"].as_str().unwrap_or_default()))
        .collect();
    assert!(kinds.contains(&("thin", "thin")), "{kinds:?}");
    let asked = ["lint", "--config", "config.toml", "--catalog", "catalog.json", "--cases", "cases.jsonl"];
    for finding in bench.json(&[&asked[..], &["--json"]].concat(), 1).as_array().expect("findings") {
        let said = |key: &str| finding[key].as_str().is_some_and(|text| text.len() > 5);
        assert!(said("why") && said("suggestion") && finding["evidence"].is_array(), "{finding}");
    }
    let ran = bench.run(&asked);
    assert!(ran.code == 1 && ran.out.contains("in the words people type"), "{}", ran.out);
    let ran = bench.run(&["lint", "--config", "config.toml", "--catalog", "catalog.json", "--ignore", "thin"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Nothing found.\n"));
    assert!(bench.run(&["lint", "--catalog", "catalog.json", "--ignore", "x"]).errors.contains("only thin, api-speak"));
}

#[test]
fn a_message_is_told_why_it_gets_its_tools() {
    let bench = Bench::new();
    let explain = ["explain", "--config", "config.toml", "--catalog", "catalog.json"];
    let message = "not by letter, start music of an artist on the speakers";
    let explained = bench.json(&[&explain[..], &["--json", message]].concat(), 0);
    assert_eq!(explained["tools"][0]["tool"], "play_song");
    let left = explained["without_negated"].as_str().expect("something is ruled out");
    assert!(!left.contains("letter") && left.contains("music"), "{left}");
    for tool in explained["tools"].as_array().expect("tools") {
        let part = |name: &str| tool[name].as_f64().expect("a number");
        let sum = part("dense") + part("words") + part("context") + part("other");
        assert!((sum - part("score")).abs() < 1e-3, "{tool}");
        let by_text: f64 =
            ["name", "description", "parameters", "keywords"].iter().filter_map(|n| tool["by_text"][n].as_f64()).sum();
        assert!((by_text - part("dense")).abs() < 0.05, "{tool}");
    }
    // What is named is selected in any case, and every command says so.
    let named = "run book_room and then pay_invoice";
    let explained = bench.json(&[&explain[..], &["--json", "--k", "1", named]].concat(), 0);
    assert_eq!(explained["k"], 2, "{explained}");
    let both = json!({"id": "named", "lang": "en", "query": named, "expect": ["book_room", "pay_invoice"]});
    bench.write("named.jsonl", &format!("{both}\n"));
    let eval = ["eval", "--config", "config.toml", "--catalog", "catalog.json", "--cases", "named.jsonl", "--k", "1"];
    let report = bench.json(&[&eval[..], &["--json", "--allow-gaps"]].concat(), 0);
    assert_eq!(report["report"]["sets"][0]["languages"][0]["figures"]["selected"]["share"], 1.0, "{report}");
    let messages = json!([
        {"role": "user", "content": "start some music of that artist"},
        {"role": "assistant", "content": "On the speakers?"},
        {"role": "user", "content": "yes"},
    ]);
    bench.write("talk.json", &messages.to_string());
    let ran = bench.run(&[&explain[..], &["--messages", "talk.json"]].concat());
    assert!(ran.code == 0 && ran.out.contains("says nothing of its own") && ran.out.contains("earlier"), "{}", ran.out);
}

#[test]
fn an_embedder_that_does_not_answer_is_not_measured_by_another() {
    let bench = Bench::new();
    bench.write("cases.jsonl", &plain_cases());
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/models/e5-small-q4.bin");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    bench.write(
        "down.toml",
        &format!(
            "[embeddings]\nprovider = \"openai\"\nmodel = \"m\"\nurl = \"http://{nobody}/v1\"\nmodel_path = {model:?}\n"
        ),
    );
    let ran = bench.run(&["eval", "--catalog", "catalog.json", "--cases", "cases.jsonl", "--config", "down.toml"]);
    assert!(ran.code != 0 && ran.out.is_empty(), "{}{}", ran.out, ran.errors);
    assert!(ran.errors.contains(&nobody.to_string()), "{}", ran.errors);
}

#[test]
fn a_message_without_text_is_not_explained() {
    let bench = Bench::new();
    let ran = bench.run(&["explain", "--catalog", "catalog.json", " "]);
    assert!(ran.code == 1 && ran.errors.contains("no_query"), "{}", ran.errors);
    let ran = bench.run(&["explain", "--catalog", "catalog.json", "--k", "0", "send a letter"]);
    assert!(ran.code == 64 && ran.errors.contains("must be at least 1"), "{}", ran.errors);
}

#[test]
fn a_log_that_teaches_nothing_is_refused_before_anything_is_embedded() {
    let bench = Bench::new();
    bench.write("log.jsonl", "");
    let ran = bench.run(&["tune", "log.jsonl", "--config", "config.toml", "--catalog", "catalog.json"]);
    assert!(ran.code == 1 && ran.errors.contains("0 labelled messages"), "{}", ran.errors);
    assert!(ran.errors.contains("log.vectors = true") && ran.errors.contains("log.text = true"), "{}", ran.errors);
    assert!(bench.provider.embedded().is_empty());
}

#[test]
fn what_is_learnt_is_written_only_when_it_helps() {
    let bench = Bench::new();
    bench.write("cases.jsonl", &strange_cases(&|i| i % 6));
    let tune = ["tune", "--config", "config.toml", "--catalog", "catalog.json", "--cases", "cases.jsonl"];
    let ran = bench.run(&[&tune[..], &["--out", "good.head"]].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.errors);
    assert!(ran.out.contains("The messages held out gain.") && bench.has("good.head"), "{}", ran.out);

    let eval = [
        "eval",
        "--config",
        "config.toml",
        "--catalog",
        "catalog.json",
        "--cases",
        "cases.jsonl",
        "--json",
        "--allow-gaps",
    ];
    let first = |report: Value| {
        report["report"]["sets"][0]["languages"][2]["figures"]["complete"][0].as_f64().expect("a share")
    };
    let before = first(bench.json(&eval, 0));
    let after = first(bench.json(&[&eval[..], &["--head", "good.head"]].concat(), 0));
    assert!(after > 0.7 && before < 0.3, "{before} -> {after}");

    // The same requests with labels that mean nothing.
    bench.write("cases.jsonl", &strange_cases(&|i| (i * 7919 + i / 6 * 31 + i / 36) % 6));
    let ran = bench.run(&[&tune[..], &["--out", "shuffled.head"]].concat());
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.contains("No gain: ") && !bench.has("shuffled.head"), "{}", ran.out);
    assert_eq!(bench.run(&[&tune[..], &["--out", "forced.head", "--force"]].concat()).code, 0);
    assert!(bench.has("forced.head"));

    bench.write("bad.head", "no head");
    let ran = bench.run(&[&eval[..], &["--head", "bad.head"]].concat());
    assert!(ran.code == 1 && ran.errors.contains("bad.head: it is not a head"), "{}", ran.errors);
}

#[test]
fn a_log_of_decisions_teaches_as_labelled_cases_do() {
    let bench = Bench::new();
    let line = |i: usize| {
        let text = format!("please {} number{i} thing{} now", WORDS[i % 6], i / 6);
        json!({
            "conversation": format!("c{i}"), "turn": 1, "call": 1,
            "query": {"hash": format!("{i:016x}"), "text": text},
            "called": [{"name": TOOLS[i % 6].0, "verdict": "bound"}],
        })
        .to_string()
            + "\n"
    };
    bench.write("decisions.jsonl", &(0..180).map(line).collect::<String>());
    let tune = ["tune", "decisions.jsonl", "--config", "config.toml", "--catalog", "catalog.json", "--json"];
    let learnt = bench.json(&tune, 0);
    assert_eq!(learnt["gains"], true, "{learnt}");
    assert_eq!(learnt["report"]["learnt_from"], 180);
    assert!(bench.has("packlight.head"));
    bench.write("few.jsonl", &line(1));
    let ran = bench.run(&["tune", "few.jsonl", "--config", "config.toml", "--catalog", "catalog.json"]);
    assert!(ran.code == 1 && ran.errors.contains("too few"), "{}", ran.errors);
}

#[test]
fn a_sidecar_chooses_with_what_was_learnt_and_takes_up_what_is_learnt_anew() {
    let bench = Bench::new();
    for (name, shift) in [("one.head", 0), ("other.head", 1)] {
        bench.write("cases.jsonl", &strange_cases(&|i| (i + shift) % 6));
        let tune =
            ["tune", "--config", "config.toml", "--catalog", "catalog.json", "--cases", "cases.jsonl", "--out", name];
        assert_eq!(bench.run(&tune).code, 0);
    }
    let path = |name: &str| bench.folder.path().join(name);
    std::fs::copy(path("one.head"), path("used.head")).expect("copied");
    let provider = Provider::new().answer(|_| Reply::text("done")).start();
    let sidecar = Sidecar::over(&bench.provider)
        .set("narrow.head", &format!("{:?}", path("used.head")))
        .set("narrow.max_retrieved_tools", "1")
        .set("narrow.directory", "\"none\"")
        .upstream("other", &provider.url())
        .away()
        .start();
    let tools: Value = serde_json::from_str(&bench.read("catalog.json")).expect("JSON");
    let mut asked = 0;
    let mut bound = || {
        asked += 1;
        let message = format!("please {} number{asked} thing now", WORDS[0]);
        let body = json!({"model": "m", "messages": [{"role": "user", "content": message}], "tools": tools});
        assert_eq!(sidecar.post("/other/v1/chat/completions", &body.to_string()).status, 200);
        let sent = provider.chats().last().expect("a chat").json();
        sent["tools"][0]["function"]["name"].as_str().expect("a name").to_owned()
    };
    assert_eq!(bound(), TOOLS[0].0);
    // Records are written behind the request.
    let heads = || -> Vec<String> {
        let records = sidecar.admin("/decisions").json();
        let heads = records.as_array().into_iter().flatten();
        heads.filter_map(|record| record["query"]["head"].as_str().map(str::to_owned)).collect()
    };
    let first = eventually("the head stands in the record", || heads().first().cloned());

    std::fs::copy(path("other.head"), path("used.head")).expect("copied");
    eventually("the new head is used", || (bound() == TOOLS[1].0).then_some(()));
    eventually("the new head stands in a record", || heads().iter().any(|head| *head != first).then_some(()));

    std::fs::write(path("used.head"), "rubbish").expect("written");
    let (status, text) =
        Sidecar::over(&provider).set("narrow.head", &format!("{:?}", path("used.head"))).start_and_fail();
    assert!(status.code() == Some(64) && text.contains("narrow.head") && text.contains("it is not a head"), "{text}");
}
