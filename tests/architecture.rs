//! The law of the house: floors, heads, sizes, names. NOT style that rustfmt or
//! clippy can see. The table is the map of `src/lib.rs`, said so that it can fail.

use std::fs;
use std::path::{Path, PathBuf};

/// Imports point down; modules of one floor do not know each other.
const FLOORS: [(u8, &[&str]); 8] = [
    (1, &["wire", "retrieval", "cost", "decision", "chart", "store"]),
    (2, &["turn", "embed"]),
    (3, &["config"]),
    (4, &["outcome", "eval", "demo", "report", "replay"]),
    (5, &["metrics", "page", "tune", "lint", "explain"]),
    (6, &["proxy"]),
    (7, &["command"]),
    (8, &["main"]),
];

/// A file that is longer is split by noun.
const LINES: usize = 400;

/// A file of tests is a list of cases, each read for itself.
const LINES_OF_TESTS: usize = 650;

/// Longer files, each with its reason.
const LONGER: &[(&str, &str)] = &[];

/// Names that say nothing, and so collect everything.
const NAMELESS: [&str; 8] = ["util", "utils", "common", "helper", "helpers", "types", "manager", "misc"];

#[test]
fn imports_point_down() {
    let source = root().join("src");
    let mut broken = Vec::new();
    for file in rust_files(&source) {
        let name = relative(&source, &file);
        broken.extend(wrong_imports(&name, &fs::read_to_string(&file).expect("a source file")));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_file_says_what_lives_in_it() {
    let mut broken = Vec::new();
    for (name, text) in all_files() {
        if !text.starts_with("//!") {
            broken.push(format!("{name}:1: opens without `//!`"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn no_file_is_too_long_or_nameless() {
    let mut broken = Vec::new();
    for (name, text) in all_files() {
        broken.extend(too_long(&name, text.lines().count()));
        let stem = Path::new(&name).file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        if NAMELESS.contains(&stem) {
            broken.push(format!("{name}: `{stem}` is no noun of ours"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn an_exception_that_is_no_longer_needed_goes() {
    for (name, reason) in LONGER {
        let lines = fs::read_to_string(root().join(name)).expect("a listed file exists").lines().count();
        assert!(lines > most(name), "{name} has {lines} lines: strike it from LONGER ({reason})");
    }
}

#[test]
fn the_checker_fails_on_a_planted_violation() {
    let wrong = |name: &str, text: &str| wrong_imports(name, text).join("; ");
    assert_eq!(wrong("wire/mod.rs", "use crate::turn::Plan;"), "wire/mod.rs:1: wire may not import turn");
    assert_eq!(
        wrong("wire/mod.rs", "\nfn f() -> crate::config::Config {}"),
        "wire/mod.rs:2: wire may not import config"
    );
    assert_eq!(
        wrong("turn/plan.rs", "use crate::{\n    wire::view::{ChatView, ToolView},\n    embed::Service,\n};"),
        "turn/plan.rs:3: turn may not import embed"
    );
    assert_eq!(
        wrong("store/redis.rs", "use super::super::proxy::App;"),
        "store/redis.rs:1: store may not import proxy"
    );
    assert_eq!(wrong("metrics.rs", "use super::proxy::App;"), "metrics.rs:1: metrics may not import proxy");
    assert_eq!(wrong("proxy/app.rs", "use packlight::main;"), "proxy/app.rs:1: proxy may not import main");
    assert_eq!(wrong("attic.rs", "fn f() {}"), "attic.rs: `attic` has no floor in tests/architecture.rs");
    assert!(too_long("src/wire/mod.rs", LINES + 1).is_some());
}

#[test]
fn the_checker_lets_good_imports_pass() {
    let good = "//! See [`crate::proxy`].\nuse crate::wire::json;\nuse super::super::wire::view; // as crate::proxy does\n\
                mod tests { use super::*; use super::super::plan; }";
    assert_eq!(wrong_imports("turn/fold.rs", good), Vec::<String>::new());
    assert_eq!(
        wrong_imports("wire/openai/view.rs", "use super::super::json;\nuse crate::wire::Format;"),
        Vec::<String>::new()
    );
    assert_eq!(wrong_imports("lib.rs", "pub mod wire;"), Vec::<String>::new());
    assert_eq!(too_long("src/wire/mod.rs", LINES), None);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn relative(base: &Path, file: &Path) -> String {
    file.strip_prefix(base).unwrap_or(file).to_string_lossy().replace('\\', "/")
}

/// Name and text of all Rust files that are ours.
fn all_files() -> Vec<(String, String)> {
    let folders = ["src", "tests", "benches"].map(|folder| root().join(folder));
    let files = folders.iter().flat_map(|folder| rust_files(folder));
    files.map(|file| (relative(root(), &file), fs::read_to_string(&file).expect("a source file"))).collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return files };
    for entry in entries.map_while(Result::ok) {
        let path = entry.path();
        let name = entry.file_name();
        let foreign = ["target", "node_modules", ".venv", "corpus", "artifacts"].iter().any(|f| name == *f);
        if path.is_dir() && !foreign {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn too_long(name: &str, lines: usize) -> Option<String> {
    let most = most(name);
    let listed = LONGER.iter().any(|(file, _)| *file == name);
    (lines > most && !listed).then(|| format!("{name}: {lines} lines, split it by noun (at most {most})"))
}

fn most(name: &str) -> usize {
    let cases = name.starts_with("tests/") && !name.starts_with("tests/support/");
    if cases { LINES_OF_TESTS } else { LINES }
}

fn floor(module: &str) -> Option<u8> {
    FLOORS.iter().find(|(_, modules)| modules.contains(&module)).map(|(floor, _)| *floor)
}

/// What a file of `src` imports against the floors; `name` is its path below `src`.
fn wrong_imports(name: &str, text: &str) -> Vec<String> {
    let path: Vec<&str> = name.trim_end_matches(".rs").split('/').filter(|part| *part != "mod").collect();
    let home = path.first().copied().unwrap_or_default();
    if home == "lib" {
        return Vec::new();
    }
    let Some(own) = floor(home) else {
        return vec![format!("{name}: `{home}` has no floor in tests/architecture.rs")];
    };
    let mut wrong = Vec::new();
    for (line, module) in imports(text, path.len()) {
        if module != home && floor(&module).is_some_and(|theirs| theirs >= own) {
            wrong.push(format!("{name}:{line}: {home} may not import {module}"));
        }
    }
    wrong
}

/// Line and first segment of every path from the crate's root. `depth`: segments of the file's own module path.
fn imports(text: &str, depth: usize) -> Vec<(usize, String)> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let tests = code.find("mod tests").unwrap_or(code.len());
    let mut found = Vec::new();
    let roots = ["crate::".to_owned(), "packlight::".to_owned(), "super::".repeat(depth)];
    for (kind, root) in roots.iter().enumerate() {
        // Inside the module of the unit tests the way up is one longer.
        let inside = format!("super::{root}");
        for (at, _) in code.match_indices(root.as_str()) {
            let part_of_more = code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            let too_short = kind == 2 && at > tests && !code[at..].starts_with(&inside);
            if part_of_more || too_short {
                continue;
            }
            let start = at + if kind == 2 && at > tests { inside.len() } else { root.len() };
            found.extend(first_segments(&code, start));
        }
    }
    found.sort();
    found
}

/// The identifier at `start`, or those that open the items of the `{…}` there.
fn first_segments(code: &str, start: usize) -> Vec<(usize, String)> {
    let line = |at: usize| 1 + code[..at].matches('\n').count();
    let word = |at: usize| -> String { code[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    if !code[start..].starts_with('{') {
        return vec![(line(start), word(start))];
    }
    let mut segments = Vec::new();
    let (mut depth, mut fresh) = (0, false);
    for (offset, c) in code[start..].char_indices() {
        match c {
            '{' => {
                depth += 1;
                fresh = depth == 1;
            }
            '}' if depth == 1 => break,
            '}' => depth -= 1,
            ',' => fresh = depth == 1,
            _ if c.is_whitespace() => {}
            _ if fresh && depth == 1 => {
                segments.push((line(start + offset), word(start + offset)));
                fresh = false;
            }
            _ => {}
        }
    }
    segments
}
