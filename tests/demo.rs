//! `packlight demo` shows what is true, and says so with its exit code.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Output};

use packlight::demo::page::{Page, Paint};
use packlight::demo::{self, Ending, Sidecar, provider};
use packlight::embed::builtin::{Builtin, FILE_NAME};

/// The agent wired straight to the model, no sidecar: nothing is narrowed, so nothing may be claimed.
#[tokio::test]
async fn without_a_sidecar_nothing_is_claimed() {
    let provider = provider::start().await.expect("a free port");
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let mut out = Vec::new();
    let mut page = Page::new(&mut out, Paint::Plain);
    let held = demo::run(Sidecar { data: provider.addr, admin: nowhere }, &provider, &mut page).await;
    let text = String::from_utf8(out).expect("text");
    assert_eq!(held.expect("the model answers"), Ending::NotAsClaimed, "{text}");
    assert!(text.contains("FAILED English: the model was sent no fewer tokens"), "{text}");
    assert!(text.contains("44 -> 44"), "{text}");
    assert!(!text.contains("all went as claimed"), "{text}");
}

/// Absent only where that is said: `PACKLIGHT_TEST_MODEL=absent`.
fn has_model() -> bool {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let is_there = Builtin::find(Some(&models), None).is_some();
    let meant = std::env::var("PACKLIGHT_TEST_MODEL").is_ok_and(|said| said == "absent");
    assert!(
        is_there || meant,
        "no model in {}: run `make model` (or set PACKLIGHT_TEST_MODEL=absent)",
        models.display()
    );
    is_there
}

/// The binary, away from this machine's vectors. `models`: where it may find the model.
fn demo(models: &Path, cache: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_packlight"));
    command.arg("demo").current_dir(cache).env("PACKLIGHT_EMBEDDINGS__CACHE_DIR", cache);
    let model = models.join(FILE_NAME);
    if model.is_file() {
        command.env("PACKLIGHT_EMBEDDINGS__MODEL_PATH", model);
    }
    command.output().expect("the binary runs")
}

#[test]
fn it_goes_as_claimed() {
    if !has_model() {
        return;
    }
    // Kept between runs: an unoptimised build takes minutes to make these vectors.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let ended = demo(&Path::new(env!("CARGO_MANIFEST_DIR")).join("models"), cache);
    let page = String::from_utf8(ended.stdout).expect("text");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{page}\n{errors}");
    for line in [
        "1  English",
        "2  Arabic",
        "3  A tool nobody asked for",
        "44 -> 18 + find_tools",
        "4 for 3 requests of the agent: 1 extra leg",
        "set_notifications",
        "found by the search",
        "all went as claimed",
        "http://127.0.0.1:8787/kimi/v1",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
    assert!(!page.contains('\u{1b}'), "colours where nobody sees them");
    assert!(page.lines().count() < 50, "{} lines are not read in ten seconds", page.lines().count());
    assert!(page.lines().all(|line| line.chars().count() <= 110), "{page}");
    assert!(errors.is_empty(), "{errors}");
}

#[test]
fn without_a_model_it_says_so_and_fails() {
    let nothing = tempfile::tempdir().expect("a folder");
    let ended = demo(nothing.path(), nothing.path());
    let page = String::from_utf8(ended.stdout).expect("text");
    assert_eq!(ended.status.code(), Some(1), "{page}");
    assert!(page.contains("no embedding model") && page.contains("make model"), "{page}");
    assert!(!page.contains("all went as claimed"), "{page}");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(errors.trim(), "packlight: demo: no embedding model: run `make model`");
}
