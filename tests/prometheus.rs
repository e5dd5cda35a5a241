//! A real Prometheus scrapes a real Packlight: every expression of the dashboard and the rules parses and finds the data
//! that the traffic made, and no series is left out of the dashboard. NOT what a series means: metrics.rs.

mod support;

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::client;
use support::embeddings::Fault;
use support::eventually;
use support::provider::Provider;
use support::received::Received;
use support::reply::Reply;
use support::roster;
use support::sidecar::Sidecar;

const KIMI: &str = "/kimi/v1/chat/completions";
const GEMINI: &str = "/gemini/v1beta/models/gemini-3-pro:generateContent";
/// Until every expression has its data. Scrapes come four times a second; the machine may be compiling.
const PATIENCE: Duration = Duration::from_secs(120);

/// Alerts that the traffic raises; the others must find nothing wrong.
const RAISED: [&str; 3] = ["PacklightFailsOpen", "PacklightEmbedderDown", "PacklightStoreErrors"];

fn dashboards() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards")
}

fn promtool(arguments: &[&str]) {
    let output = Command::new("promtool").args(arguments).current_dir(dashboards()).output();
    let output = output.expect("promtool: run `make prometheus`");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("FAILED"), "{said}");
}

#[test]
fn the_rules_hold_their_own_tests() {
    promtool(&["check", "rules", "rules.yaml"]);
    promtool(&["test", "rules", "rules.test.yaml"]);
}

#[test]
fn every_expression_finds_its_data_and_every_series_is_shown() {
    let catalog = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(catalog.path(), r#"[{"name":"ring"}]"#).expect("written");
    let (provider, sidecar) = start(catalog.path());
    let prometheus = Prometheus::start(sidecar.admin);
    let expressions = expressions();
    let start = Instant::now();
    let mut round = 0;
    let missing = loop {
        traffic(&provider, &sidecar, round);
        round += 1;
        let silent = expressions.iter().filter(|(_, expression)| prometheus.query(expression).is_empty());
        let mut missing: Vec<String> = silent.map(|(title, expression)| format!("{title}: {expression}")).collect();
        missing.extend(prometheus.silent_rules());
        if missing.is_empty() || start.elapsed() > PATIENCE {
            break missing;
        }
    };
    assert!(missing.is_empty(), "no data for\n{}", missing.join("\n"));
    prometheus.assert_healthy_rules();
    check_series(&sidecar.metrics().0);
}

/// Every series of the dashboard and the rules exists, and the reverse.
fn check_series(metrics: &str) {
    let exported: BTreeSet<String> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect();
    let mut used = BTreeSet::new();
    for file in ["packlight.json", "rules.yaml"] {
        let text = std::fs::read_to_string(dashboards().join(file)).expect("a file");
        // Descriptions of alerts name series too; what they name must exist as well.
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':') {
            if word.starts_with("packlight_") {
                used.insert(base(word, &exported));
            }
        }
    }
    let unknown: Vec<_> = used.difference(&exported).collect();
    let unused: Vec<_> = exported.difference(&used).collect();
    assert!(unknown.is_empty(), "in dashboards/ and not in /metrics: {unknown:?}");
    assert!(unused.is_empty(), "in /metrics and not in dashboards/: {unused:?}");
}

/// A histogram's parts are its own.
fn base(word: &str, exported: &BTreeSet<String>) -> String {
    let parts = ["_bucket", "_sum", "_count"];
    let whole = parts.iter().find_map(|part| word.strip_suffix(part)).filter(|whole| exported.contains(*whole));
    whole.unwrap_or(word).to_owned()
}

/// Title and expression of every target of the dashboard, as Grafana would ask.
fn expressions() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(dashboards().join("packlight.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("json");
    let mut expressions = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().expect("an expression");
            let asked =
                expression.replace("$__rate_interval", "1m").replace("$__range", "5m").replace("$upstream", ".*");
            assert!(!asked.contains('$'), "a variable that Grafana does not know: {asked}");
            expressions.push((panel["title"].as_str().unwrap_or_default().to_owned(), asked));
        }
    }
    assert!(expressions.len() > 25, "the dashboard lost its panels");
    expressions
}

/// Two upstreams: one narrowed, one held out; a catalog. The store is a Redis that is not there.
fn start(catalog: &Path) -> (Provider, Sidecar) {
    let provider = Provider::new().answer(model).start();
    let url = provider.url();
    let sidecar = Sidecar::over(&provider)
        .set("narrow.max_retrieved_tools", "3")
        .set("narrow.sticky_need", "1")
        .set("narrow.binding", "\"append\"")
        .set("store.kind", "\"redis\"")
        .set("store.url", "\"redis://127.0.0.1:1\"")
        .set("catalogs.crm.tools", &format!("{catalog:?}"))
        .upstream("held", &url)
        .tail("narrow = { percent = 0 }\n[prices.\"*\"]\ninput = 3.0\ncached_input = 0.3\noutput = 15.0\n")
        .away()
        .start();
    (provider, sidecar)
}

/// A model that does what the message says.
fn model(received: &Received) -> Reply {
    if received.messages().iter().any(|message| message["tools"].is_array()) {
        // A server that calls itself Kimi K3 and is none.
        return Reply::status(400, r#"{"error":{"message":"tokenization failed"}}"#);
    }
    let asked = received.asked();
    let reply = if asked.contains("astray") {
        Reply::call("lock_door", json!({"value": "x"}))
    } else if asked.contains("lookup") && received.declares("find_tools") && !received.declares("lock_door") {
        Reply::find("Locks the front door of the house")
    } else {
        Reply::call("get_weather", json!({"value": "x"}))
    };
    reply.usage(1200, 700, 30)
}

/// A little of everything. `round` makes new conversations and a new roster.
fn traffic(provider: &Provider, sidecar: &Sidecar, round: usize) {
    let post = |path: &str, headers: &[(&str, &str)], body: &Value| {
        let answer = sidecar.post_with(path, headers, &body.to_string());
        assert!(answer.status == 200 || answer.status == 400, "{}", answer.text());
    };
    let ask = |text: &str| roster::ask(&format!("{text} {round}"));
    let shadow = [("x-packlight-mode", "shadow")];
    post(KIMI, &[], &ask("Weather report: temperature, rain forecast."));
    post(KIMI, &[], &ask("Weather report, astray"));
    post(KIMI, &[], &ask("Weather report, lookup"));
    post(KIMI, &shadow, &ask("Weather report: temperature, rain forecast."));
    post(KIMI, &shadow, &ask("Weather report, astray"));
    post(KIMI, &[("x-packlight-mode", "off")], &ask("Weather"));
    post("/held/v1/chat/completions", &[], &ask("Weather report: temperature, rain forecast."));
    post(GEMINI, &[], &roster::ask_gemini("Weather report: temperature, rain forecast."));
    let mut declared = ask("Weather report: temperature, rain forecast.");
    declared["model"] = "kimi-k3".into();
    post(KIMI, &[], &declared);
    let mut plain = ask("hello");
    plain.as_object_mut().expect("an object").remove("tools");
    post(KIMI, &[], &plain);
    // A roster nobody has seen, and an embedder that is down: sent in full.
    provider.set_embeddings(Fault::Down);
    let mut unseen = ask("Weather report: temperature, rain forecast.");
    for (n, tool) in unseen["tools"].as_array_mut().expect("tools").iter_mut().enumerate() {
        tool["function"]["description"] = format!("Weather {n} of round {round}").into();
    }
    post(KIMI, &[], &unseen);
    provider.set_embeddings(Fault::None);
}

/// A Prometheus of this test's own.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    fn start(target: SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // A minute between evaluations is the rules' own; here the clock runs faster.
        let rules = std::fs::read_to_string(dashboards().join("rules.yaml")).expect("the rules");
        let rules = rules.replace("interval: 1m", "interval: 500ms");
        std::fs::write(folder.path().join("rules.yaml"), rules).expect("rules");
        let config = format!(
            "global: {{scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 500ms}}\n\
             rule_files: [rules.yaml]\nscrape_configs:\n  - job_name: packlight\n    scrape_timeout: 250ms\n    \
             static_configs: [{{targets: [\"{target}\"]}}]\n"
        );
        let file = folder.path().join("prometheus.yml");
        std::fs::write(&file, config).expect("a config");
        // Free a moment ago; should somebody else take it, it does not start and the test says so.
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdout(Stdio::null())
            .spawn()
            .expect("prometheus: run `make prometheus`");
        let prometheus = Self { child, address, _folder: folder };
        eventually("prometheus", || {
            let socket = std::net::TcpStream::connect(address).is_ok();
            (socket && client::send(address, "GET", "/-/ready", &[], b"").status == 200).then_some(())
        });
        prometheus
    }

    /// What an expression comes to now; empty: no data. An expression that does not parse is a failure.
    fn query(&self, expression: &str) -> Vec<Value> {
        let answer = self.get(&format!("/api/v1/query?query={}", encoded(expression)));
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    /// Recorded series without data, and alerts that do not see what the traffic did.
    fn silent_rules(&self) -> Vec<String> {
        let rules = self.rules();
        let expected = rules.iter().filter(|rule| {
            rule["type"] == "recording" || rule["name"].as_str().is_some_and(|name| RAISED.contains(&name))
        });
        let silent = expected.filter(|rule| self.query(rule["query"].as_str().expect("an expression")).is_empty());
        silent.map(|rule| rule["name"].to_string()).collect()
    }

    /// Every rule evaluates without an error.
    fn assert_healthy_rules(&self) {
        let rules = self.rules();
        assert!(rules.len() >= 15, "{rules:?}");
        for rule in rules {
            self.query(rule["query"].as_str().expect("an expression"));
            assert_eq!(rule["health"], "ok", "{rule}");
        }
    }

    fn rules(&self) -> Vec<Value> {
        let answer = self.get("/api/v1/rules");
        let groups = answer["data"]["groups"].as_array().expect("groups");
        groups.iter().flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default()).collect()
    }

    fn get(&self, path: &str) -> Value {
        let answer = client::send(self.address, "GET", path, &[], b"");
        serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{path}: {}", answer.text()))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
