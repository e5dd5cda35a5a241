//! Configuration as people meet it: every file we ship loads, and every message is asserted whole.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use packlight::config::Config;
use packlight::config::catalog::Catalog;
use packlight::config::narrow::{Binding, Mode};

fn parse(text: &str, variables: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    let variables: Vec<(OsString, OsString)> = variables.iter().map(|(k, v)| (k.into(), v.into())).collect();
    Config::parse(text, Path::new(""), &variables).map_err(|problems| problems.iter().map(|p| p.to_string()).collect())
}

fn problems(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
    parse(text, variables).expect_err("must not load")
}

fn shipped() -> Vec<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_shipped_file_loads() {
    let mut loaded = 0;
    for path in shipped() {
        let text = std::fs::read_to_string(&path).unwrap();
        match path.file_stem().unwrap().to_str().unwrap() {
            "catalog" => drop(Catalog::read(&path).unwrap()),
            // It is compiled in.
            "prices" => assert!(packlight::cost::prices::builtin().len() > 5),
            _ => {
                let read = Config::parse(&text, path.parent().unwrap(), &[]);
                read.unwrap_or_else(|problems| panic!("{}: {problems:?}", path.display()));
            }
        }
        loaded += 1;
    }
    assert!(loaded >= 3);
}

#[test]
fn the_documented_file_says_the_defaults() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/packlight.toml");
    let documented = parse(&std::fs::read_to_string(path).unwrap(), &[]).unwrap();
    let default = Config::default();
    assert_eq!(format!("{:?}", documented.server), format!("{:?}", default.server));
    assert_eq!(format!("{:?}", documented.upstreams), format!("{:?}", default.upstreams));
    assert_eq!(format!("{:?}", documented.narrow), format!("{:?}", default.narrow));
    assert_eq!(format!("{:?}", documented.embeddings), format!("{:?}", default.embeddings));
    assert_eq!(format!("{:?}", documented.log), format!("{:?}", default.log));
    assert_eq!(documented.store.url.reveal(), default.store.url.reveal());
    assert_eq!(documented.prices.find("kimi-k3"), default.prices.find("kimi-k3"));
}

#[test]
fn nothing_at_all_is_the_default() {
    let config = parse("", &[]).unwrap();
    let prefixes: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.prefix.as_str()).collect();
    assert_eq!(prefixes, ["/kimi", "/gemini"]);
    assert_eq!(config.narrow.deadline, Duration::from_millis(300));
}

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_the_file() {
    let text = r#"
[sever]
listen = "x"
[server]
listen = "localhost"
max_body = "64mib"
shutdown_grace = "30"
admin_listn = "127.0.0.1:1"
[narrow]
percent = 101
mode = "on"
always_on = ["a[", 3]
max_retrieved_tools = -1
deadline = 300
percnt = 5
catalog = "nowhere.toml"
[embeddings]
provider = "cohere"
[prices.x]
input = "cheap"
[store]
kind = "disk"
url = "http://secret@h"
"#;
    assert_eq!(
        problems(text, &[]),
        [
            "line 2: sever: unknown key, did you mean server?",
            "line 5: server.listen: `localhost` is not an IP address and a port, such as 127.0.0.1:8787",
            "line 6: server.max_body: `64mib` is not a size, write a whole number and a unit: 512KiB, 64MiB, 1GiB",
            "line 7: server.shutdown_grace: `30` is not a duration, write a whole number and a unit: 300ms, 30s, 5m, 1h",
            "line 8: server.admin_listn: unknown key, did you mean server.admin_listen?",
            "line 10: narrow.percent: must be a whole number from 0 to 100, not 101",
            "line 11: narrow.mode: must be one of off, shadow, narrow, not `on`",
            "line 12: narrow.always_on: must be a list of text, one entry is a whole number",
            "line 13: narrow.max_retrieved_tools: must be a whole number of at least 0, not -1, or \"auto\"",
            "line 14: narrow.deadline: must be text, not a whole number",
            "line 15: narrow.percnt: unknown key, did you mean narrow.percent?",
            "line 16: narrow.catalog: cannot read nowhere.toml: No such file or directory (os error 2)",
            "line 18: embeddings.provider: must be one of builtin, gemini, openai, not `cohere`",
            "line 19: prices.x.output: must be given, in USD per million tokens",
            "line 20: prices.x.input: must be a number, not text",
            "line 22: store.kind: must be one of memory, redis, not `disk`",
            "line 23: store.url: must start with redis:// or unix://",
        ]
    );
}

#[test]
fn what_serving_would_refuse_is_refused() {
    let named = "[narrow]\nfind_tools_name = \"call_tool\"\n";
    let why = "`call_tool` is the tool that dispatch declares beside it, choose another name";
    assert_eq!(problems(named, &[]), [format!("line 2: narrow.find_tools_name: {why}")]);

    for url in ["redis://:secret@h:badport", "redis://:secret@", "unix://"] {
        let told = problems(&format!("[store]\nurl = \"{url}\"\n"), &[]);
        assert!(told.len() == 1 && told[0].starts_with("line 2: store.url: is not a Redis URL: write"), "{told:?}");
        assert!(!told[0].contains("secret"), "{told:?}");
    }

    let folder = tempfile::tempdir().unwrap();
    let log = |path: &Path| format!("[log]\ndecisions = \"{}\"\n", path.display());
    let shown = folder.path().display();
    let is_folder = format!("line 2: log.decisions: {shown} is a folder: name a file in it");
    assert_eq!(problems(&log(folder.path()), &[]), [is_folder]);
    // The folder may be another machine's: `check` warns, and `serve` refuses.
    assert!(parse(&log(&folder.path().join("none/log.jsonl")), &[]).is_ok());
    assert!(parse(&log(&folder.path().join("log.jsonl")), &[]).is_ok());
    assert!(parse("[log]\ndecisions = \"log.jsonl\"\n", &[]).is_ok());
}

#[test]
fn the_two_ports_must_not_meet() {
    let read = |data: &str, admin: &str| {
        parse(&format!("[server]\nlisten = \"{data}\"\nadmin_listen = \"{admin}\"\n"), &[]).map(drop)
    };
    for (data, admin) in [
        ("127.0.0.1:7", "127.0.0.1:7"),
        ("0.0.0.0:7", "127.0.0.1:7"),
        ("127.0.0.1:7", "0.0.0.0:7"),
        ("[::]:7", "127.0.0.1:7"),
        ("[::]:7", "0.0.0.0:7"),
        ("[::1]:7", "[::]:7"),
    ] {
        let told = format!("line 3: server.admin_listen: {data} is the data port already");
        assert_eq!(read(data, admin), Err(vec![told]), "{data} {admin}");
    }
    for (data, admin) in
        [("127.0.0.1:7", "127.0.0.2:7"), ("0.0.0.0:7", "[::1]:7"), ("0.0.0.0:7", "0.0.0.0:8"), ("[::]:0", "[::]:0")]
    {
        assert_eq!(read(data, admin), Ok(()), "{data} {admin}");
    }
}

#[test]
fn upstreams_must_be_told_apart() {
    let text = r#"
[[upstream]]
name = "a"
prefix = "/x"
url = "https://a.example.com"
[[upstream]]
name = "b"
prefix = "/x/"
url = "ftp://b.example.com"
[[upstream]]
name = "c"
prefix = "/"
narrow = { percent = 50, mod = "off" }
[[upstream]]
prefix = "d"
url = "https://me:hunter2@d.example.com"
max_tools = 0
"#;
    assert_eq!(
        problems(text, &[]),
        [
            "line 8: upstream.b.prefix: `/x` is the prefix of upstream a already",
            "line 9: upstream.b.url: must be an http or https address, such as https://api.example.com, not ftp",
            "line 10: upstream.c.url: must be given, such as \"https://api.example.com\"",
            "line 12: upstream.c.prefix: must be more than /: it is what tells upstreams apart",
            "line 13: upstream.c.narrow.mod: unknown key, did you mean upstream.c.narrow.mode?",
            "line 14: upstream.3.name: must be given, such as \"kimi\"",
            "line 15: upstream.3.prefix: `d` must start with /",
            "line 16: upstream.3.url: must not hold credentials: the agent's own are sent on",
            "line 17: upstream.3.max_tools: must be a whole number of at least 1, not 0",
        ]
    );
}

#[test]
fn an_upstream_overrides_any_key_of_narrow() {
    let text = r#"
[narrow]
percent = 40
max_retrieved_tools = 9
[[upstream]]
name = "kimi"
narrow = { mode = "shadow", binding = "append" }
"#;
    let config = parse(text, &[]).unwrap();
    let [kimi] = config.upstreams.as_slice() else { panic!("one upstream") };
    assert_eq!((kimi.narrow.mode, kimi.narrow.binding), (Mode::Shadow, Binding::Append));
    assert_eq!((kimi.narrow.percent, kimi.narrow.max_retrieved_tools.most()), (40, 9));
    assert_eq!(
        (kimi.prefix.as_str(), kimi.max_tools, kimi.url.to_string().as_str()),
        ("/kimi", 128, "https://api.moonshot.ai")
    );
    assert_eq!(config.narrow.mode, Mode::Narrow);
}

#[test]
fn auto_is_the_default_and_twelve_with_a_remote_embedder() {
    use packlight::retrieval::width::Width;
    let remote = "[embeddings]\nprovider = \"openai\"\nurl = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n";
    let widths = |text: &str| {
        let config = parse(text, &[]).unwrap();
        let narrow = config.upstreams.iter().map(|upstream| &upstream.narrow).chain([&config.narrow]);
        narrow.map(|narrow| narrow.max_retrieved_tools).collect::<Vec<_>>()
    };
    assert_eq!(widths(""), [Width::Auto; 3]);
    assert_eq!(widths(remote), [Width::Fixed(12); 3]);
    assert_eq!(widths(&format!("{remote}[narrow]\nmax_retrieved_tools = \"auto\"\n")), [Width::Fixed(12); 3]);
    assert_eq!(widths(&format!("{remote}[narrow]\nmax_retrieved_tools = 7\n")), [Width::Fixed(7); 3]);
    // A small block is no contradiction: `auto` selects what fits.
    assert_eq!(widths("[narrow]\nmax_bound_tools = 15\n"), [Width::Auto; 3]);
}

#[test]
fn the_environment_overrides_the_file_and_the_built_in() {
    let variables = [
        ("PACKLIGHT_SERVER__LISTEN", "0.0.0.0:1"),
        ("PACKLIGHT_NARROW__ALWAYS_ON", "help, search_*"),
        ("PACKLIGHT_NARROW__PERCENT", "7"),
        ("PACKLIGHT_UPSTREAM__GEMINI__URL", "http://127.0.0.1:9"),
        ("PACKLIGHT_UPSTREAM__GEMINI__NARROW__MODE", "off"),
        ("PACKLIGHT_PRICES__KIMI_K3__INPUT", "2.5"),
        ("PACKLIGHT_LOG__TEXT", "true"),
        ("PACKLIGHT_TEST_REDIS", "anything"),
        ("PACKLIGHT_SERVICE_HOST", "10.0.0.1"),
        ("PACKLIGHT_PORT_8787_TCP", "tcp://10.0.0.1:8787"),
        ("PATH", "/bin"),
    ];
    let config = parse("[server]\nlisten = \"127.0.0.1:2\"\n", &variables).unwrap();
    assert_eq!(config.server.listen.to_string(), "0.0.0.0:1");
    assert_eq!(config.narrow.always_on, ["help", "search_*"]);
    assert_eq!(config.upstreams.len(), 2);
    let gemini = &config.upstreams[1];
    assert_eq!((gemini.url.to_string().as_str(), gemini.narrow.mode), ("http://127.0.0.1:9", Mode::Off));
    assert_eq!((gemini.narrow.percent, gemini.max_tools), (7, 512));
    assert_eq!(config.prices.find("kimi-k3").map(|price| (price.input, price.output)), Some((2.5, 15.0)));
    assert!(config.log.text);
}

#[test]
fn unknown_and_wrong_variables_are_problems_by_their_name() {
    let variables = [
        ("PACKLIGHT_SEVER__LISTEN", "0.0.0.0:1"),
        ("PACKLIGHT_LISTEN", "0.0.0.0:1"),
        ("PACKLIGHT_NARROW__PERCENT", "all"),
        ("PACKLIGHT_UPSTREAM__OPENAI__URL", "http://h"),
        ("PACKLIGHT_PRICES__GPT__INPUT", "1"),
    ];
    assert_eq!(
        problems("nonsense = 1", &variables),
        [
            "line 1: nonsense: unknown key, known here are catalogs, embeddings, log, narrow, prices, server, store, \
             upstream",
            "PACKLIGHT_LISTEN: listen: unknown key, did you mean server.listen?",
            "PACKLIGHT_NARROW__PERCENT: narrow.percent: must be a whole number from 0 to 100, not `all`",
            "PACKLIGHT_PRICES__GPT__INPUT: prices.gpt: no price has this name, there are kimi-k3*, kimi-k3.1*, \
             kimi-k3.1*highspeed*, kimi-k2.6*, kimi-k2.5*, gemini-2.5-pro*, gemini-2.5-flash*, gemini-2.5-flash-lite*, \
             gemini-3*-flash*, gemini-3.5-flash*, gemini-3*-flash-lite*, gemini-3*-pro*",
            "PACKLIGHT_SEVER__LISTEN: sever: unknown key, did you mean server?",
            "PACKLIGHT_UPSTREAM__OPENAI__URL: upstream.openai: no upstream has this name, there are kimi, gemini",
        ]
    );
}

#[test]
fn a_key_is_read_from_the_variable_it_is_named_by_and_never_shown() {
    let text = "[embeddings]\nprovider = \"gemini\"\n";
    let config = parse(text, &[("GEMINI_API_KEY", "AIza-1"), ("AI_EMBEDDINGS_MODEL", "m-2")]).unwrap();
    assert_eq!(config.embeddings.api_key.as_ref().map(|key| key.reveal()), Some("AIza-1"));
    assert_eq!(config.embeddings.model.as_deref(), Some("m-2"));
    assert!(!format!("{config:?}").contains("AIza"));
    assert_eq!(problems(text, &[]), ["line 1: embeddings.api_key_env: GEMINI_API_KEY is not set in the environment"]);
    let pasted = "[embeddings]\nprovider = \"openai\"\napi_key_env = \"sk-abc\"\n";
    assert_eq!(
        problems(pasted, &[]),
        ["line 3: embeddings.api_key_env: the variable it names is not set in the environment"]
    );
}

#[test]
fn a_file_that_is_not_toml_says_where() {
    let problems = problems("[server]\nlisten = \n[narrow\n", &[]);
    assert!(problems[0].starts_with("line 2: not TOML: "), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.starts_with("line 3: not TOML: ")), "{problems:?}");
}

#[test]
fn paths_of_a_file_start_at_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tools.toml"), "[[tool]]\nname = \"a\"\nkeywords = [\"k\"]\n").unwrap();
    let file = folder.path().join("packlight.toml");
    std::fs::write(&file, "[narrow]\ncatalog = \"tools.toml\"\n").unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let config = Config::parse(&text, folder.path(), &[]).unwrap();
    let catalog = config.upstreams[0].narrow.catalog.clone().unwrap();
    assert_eq!(catalog.find("a").unwrap().keywords, ["k"]);
    std::fs::write(folder.path().join("tools.toml"), "[[tool]]\nname = \"a\"\nkeyword = 1\n").unwrap();
    let problems = Config::parse(&text, folder.path(), &[]).unwrap_err();
    let catalog = folder.path().join("tools.toml");
    assert_eq!(
        problems[0].to_string(),
        format!(
            "line 2: narrow.catalog: {}: line 3: tool.a.keyword: unknown key, did you mean tool.a.keywords?",
            catalog.display()
        )
    );
}

#[test]
fn catalogs_are_read_by_name_and_what_is_wrong_with_one_is_said_by_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("crm.json", r#"{"tools":[{"name":"a"},{"functionDeclarations":[{"name":"b"}]}]}"#);
    write("odd.json", r#"[{"name":"a"},{"description":"x"}]"#);
    write("cut.json", "[");
    let read = |text: &str| {
        let read = Config::parse(text, folder.path(), &[("PACKLIGHT_CATALOGS__HR__TOOLS".into(), crm().into())]);
        let shown = |path: String| path.replace(&folder.path().display().to_string(), "FOLDER");
        read.map_err(|problems| problems.iter().map(|problem| shown(problem.to_string())).collect::<Vec<_>>())
    };
    // A relative path in a variable starts where the process stands.
    fn crm() -> String {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("src/demo/roster.json").display().to_string()
    }
    let config = read("[catalogs.crm]\ntools = \"crm.json\"\n").unwrap();
    let found: Vec<_> = config.catalogs.iter().map(|one| (one.name.as_str(), one.listing.len())).collect();
    assert_eq!(found, [("crm", 2), ("hr", 44)]);
    let text = r#"
[catalogs.gone]
tools = "gone.json"
[catalogs.odd]
tools = "odd.json"
tool = 1
[catalogs.cut]
tools = "cut.json"
[catalogs.none]
[catalogs.number]
tools = 3
[catalogs."a b"]
tools = "crm.json"
[catalog.crm]
"#;
    assert_eq!(
        read(text).unwrap_err(),
        [
            "line 3: catalogs.gone.tools: cannot read FOLDER/gone.json: No such file or directory (os error 2)",
            "line 5: catalogs.odd.tools: FOLDER/odd.json: tool 2 has no name",
            "line 6: catalogs.odd.tool: unknown key, did you mean catalogs.odd.tools?",
            "line 8: catalogs.cut.tools: FOLDER/cut.json: not JSON: EOF while parsing a list at line 1 column 1",
            "line 9: catalogs.none.tools: must be given, the path of a JSON file with an array of tools",
            "line 11: catalogs.number.tools: must be given, the path of a JSON file with an array of tools",
            "line 11: catalogs.number.tools: must be text, not a whole number",
            "line 12: catalogs.a b: `a b` must be letters, digits, - and _ only: it is the value of a header",
            "line 14: catalog: unknown key, did you mean catalogs?",
        ]
    );
}

#[test]
fn check_names_the_catalogs_and_what_is_wrong_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("packlight.toml");
    let tools: Vec<String> = (0..200).map(|n| format!("{{\"name\":\"t{n}\"}}")).collect();
    std::fs::write(folder.path().join("crm.json"), format!("[{}]", tools.join(","))).unwrap();
    std::fs::write(&file, "[catalogs.crm]\ntools = \"crm.json\"\n").unwrap();
    let check = || {
        let checked =
            std::process::Command::new(env!("CARGO_BIN_EXE_packlight")).arg("check").arg(&file).output().unwrap();
        (
            checked.status.success(),
            String::from_utf8(checked.stdout).unwrap() + &String::from_utf8(checked.stderr).unwrap(),
        )
    };
    let (ok, said) = check();
    assert!(ok && said.contains("x-packlight-catalog: crm  200 tools of "), "{said}");
    assert!(
        said.contains("kimi takes 128: where all would be sent, what fits is") && !said.contains("gemini takes"),
        "{said}"
    );
    std::fs::write(folder.path().join("crm.json"), "[{\"googleSearch\":{}}]").unwrap();
    let (ok, said) = check();
    assert!(!ok && said.contains("catalogs.crm.tools") && said.contains("tool 1 is no function"), "{said}");
}
