//! `deploy/` and `dashboards/` without a container engine: they parse, they name files that exist, and every variable
//! they set is one that Packlight takes. NOT that an image builds: no engine runs here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use yaml_rust2::{Yaml, YamlLoader};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Yaml {
    let mut documents = YamlLoader::load_from_str(&text(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(documents.len(), 1, "{path}");
    documents.remove(0)
}

fn strings(list: &Yaml) -> Vec<String> {
    list.as_vec().into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

/// `packlight check` in an environment of these variables and no other.
fn accepts(variables: &[(String, String)]) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("empty.toml");
    std::fs::write(&file, "").expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_packlight"));
    command.env_clear().arg("check").arg(&file).envs(variables.iter().map(|(key, value)| (key, value)));
    let output = command.output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{variables:?}: {said}");
}

#[test]
fn compose_names_what_exists_and_sets_what_packlight_takes() {
    let compose = yaml("deploy/compose.yaml");
    let services = compose["services"].as_hash().expect("services");
    let names: BTreeSet<_> = services.keys().filter_map(Yaml::as_str).collect();
    assert_eq!(names, BTreeSet::from(["grafana", "packlight", "prometheus", "redis"]));
    for (name, service) in services {
        for volume in strings(&service["volumes"]) {
            let source = volume.split(':').next().unwrap_or_default().to_owned();
            if source.starts_with('.') {
                assert!(root().join("deploy").join(&source).is_file(), "{name:?}: {source} is not there");
            } else {
                assert!(!compose["volumes"][source.as_str()].is_badvalue(), "{name:?}: no volume {source}");
            }
        }
        for port in strings(&service["ports"]) {
            assert!(port.starts_with("127.0.0.1:"), "{name:?}: {port} is open to the network");
        }
        let image = service["image"].as_str().expect("an image");
        assert!(image == "packlight" || image.rsplit(':').next().is_some_and(|tag| tag != "latest" && tag != image));
    }
    let environment = compose["services"]["packlight"]["environment"].as_hash().expect("an environment");
    let variables = environment.iter().map(|(key, value)| {
        let value = value.as_str().expect("text");
        // `${NAME:-default}`, as Compose reads it where nobody says otherwise.
        let value = value.split_once(":-").map_or(value, |(_, default)| default.trim_end_matches('}'));
        (key.as_str().expect("text").to_owned(), value.to_owned())
    });
    accepts(&variables.collect::<Vec<_>>());
    assert!(
        root()
            .join("deploy")
            .join(compose["services"]["packlight"]["build"]["context"].as_str().expect("a path"))
            .join("deploy/Dockerfile")
            .is_file()
    );
}

#[test]
fn the_image_runs_as_nobody_in_particular_and_asks_itself_whether_it_is_well() {
    let file = text("deploy/Dockerfile");
    // Lines that go on are one instruction.
    let joined = file.replace("\\\n", " ");
    let instructions: Vec<&str> =
        joined.lines().filter(|line| !line.trim_start().starts_with('#') && !line.is_empty()).collect();
    let last_stage = instructions.iter().rposition(|line| line.starts_with("FROM ")).expect("a stage");
    let of = |name: &str| instructions[last_stage..].iter().find_map(|line| line.strip_prefix(name)).map(str::trim);
    assert!(of("USER ").is_some_and(|user| user != "root" && user != "0"), "not as root");
    let health = of("HEALTHCHECK ").expect("a health check");
    assert!(health.contains("CMD [\"packlight\", \"health\"]"), "{health}");
    let help = Command::new(env!("CARGO_BIN_EXE_packlight")).args(["health", "--help"]).output().expect("the binary");
    assert!(help.status.success(), "the health check's command is gone");
    let environment = of("ENV ").expect("variables");
    let pairs = environment.split_whitespace().filter_map(|pair| pair.split_once('='));
    let mut variables: Vec<_> = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let model = variables.iter_mut().find(|(key, _)| key == "PACKLIGHT_EMBEDDINGS__MODEL_PATH").expect("the model");
    assert!(instructions.iter().any(|line| line.starts_with("COPY ") && line.ends_with(&model.1)), "no model there");
    // A file that is not there is refused, and here it is not.
    model.1 = root().join("Cargo.toml").display().to_string();
    accepts(&variables);
    for line in instructions.iter().filter(|line| line.starts_with("COPY ") && !line.contains("--from=")) {
        for source in line.split_whitespace().skip(1).take_while(|word| !word.starts_with('/')) {
            assert!(source == "." || root().join(source).exists(), "{line}");
        }
    }
    let rust = text("Cargo.toml");
    let version = rust.lines().find_map(|line| line.strip_prefix("rust-version = \"")).expect("a version");
    assert!(
        file.contains(&format!("FROM rust:{}-", version.trim_end_matches('"'))),
        "built with another Rust than {version}"
    );
}

#[test]
fn a_health_check_tells_a_sidecar_that_serves_from_none() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let health = |address: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_packlight"));
        command.arg("health").env("PACKLIGHT_SERVER__ADMIN_LISTEN", address).output().expect("the binary runs")
    };
    assert_eq!(health(&closed.to_string()).status.code(), Some(1));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let server = std::thread::spawn(move || {
        for answer in
            ["HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n", "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"]
        {
            use std::io::{Read, Write};
            let (mut stream, _) = listener.accept().expect("a caller");
            let mut asked = [0; 512];
            let read = stream.read(&mut asked).expect("a request");
            assert!(asked[..read].starts_with(b"GET /healthz HTTP/1.1\r\n"));
            stream.write_all(answer.as_bytes()).expect("an answer");
        }
    });
    // Everywhere is asked on the loopback.
    assert_eq!(health(&format!("0.0.0.0:{port}")).status.code(), Some(0));
    assert_eq!(health(&format!("127.0.0.1:{port}")).status.code(), Some(1));
    server.join().expect("it was asked");
}

#[test]
fn grafana_finds_the_dashboard_and_its_data() {
    let compose = text("deploy/compose.yaml");
    let provider = yaml("deploy/grafana/dashboards.yaml");
    let folder = provider["providers"][0]["options"]["path"].as_str().expect("a path");
    assert!(compose.contains(&format!("../dashboards/packlight.json:{folder}/packlight.json:ro")), "{folder}");
    let source = yaml("deploy/grafana/datasource.yaml");
    assert_eq!(source["datasources"][0]["url"].as_str(), Some("http://prometheus:9090"));
    let scrape = yaml("deploy/prometheus.yaml");
    assert_eq!(scrape["scrape_configs"][0]["static_configs"][0]["targets"][0].as_str(), Some("packlight:9787"));
    assert_eq!(source["datasources"][0]["jsonData"]["timeInterval"], scrape["global"]["scrape_interval"]);
}

#[test]
fn the_dashboard_is_whole() {
    let dashboard: Value = serde_json::from_str(&text("dashboards/packlight.json")).expect("json");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut ids = BTreeSet::new();
    let mut taken: BTreeSet<(u64, u64)> = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{title}: its id stands twice");
        let side = |name: &str| panel["gridPos"][name].as_u64().unwrap_or_else(|| panic!("{title}: {name}"));
        assert!(side("x") + side("w") <= 24, "{title}: wider than the page");
        for x in side("x")..side("x") + side("w") {
            for y in side("y")..side("y") + side("h") {
                assert!(taken.insert((x, y)), "{title}: it lies on another");
            }
        }
        if panel["type"] != "row" {
            assert!(
                !panel["description"].as_str().unwrap_or_default().is_empty(),
                "{title}: it does not say what it means"
            );
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
            assert!(panel["targets"].as_array().is_some_and(|targets| !targets.is_empty()), "{title}");
        }
    }
    // Savings must be able to fall below zero: no axis of dollars saved begins at zero.
    for panel in panels.iter().filter(|panel| panel["title"].as_str().is_some_and(|title| title.starts_with("Saved"))) {
        assert!(panel["fieldConfig"]["defaults"]["min"].is_null(), "{}", panel["title"]);
    }
}

#[test]
fn prometheus_takes_its_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = |from: &str, to: &str| -> PathBuf {
        let to = folder.path().join(to);
        std::fs::copy(root().join(from), &to).expect("a copy");
        to
    };
    // As compose lays them side by side.
    copy("dashboards/rules.yaml", "rules.yaml");
    let config = copy("deploy/prometheus.yaml", "prometheus.yaml");
    let output = Command::new("promtool")
        .args(["check", "config"])
        .arg(config)
        .output()
        .expect("promtool: run `make prometheus`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
