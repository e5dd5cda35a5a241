//! The status page as a browser sees it: real Chromium, headless, and a real sidecar. NOT what it looks like: the
//! pictures that are left in `target/tmp/page/` are for eyes.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use packlight::cost::correction::Correction;
use packlight::decision::{Block, Called, Decision, Query, Roster, Saved, Scored, Timings, ToolTokens, Used};
use packlight::page::html::{Embedder, Upstream, View, page};
use packlight::page::today::Today;
use serde_json::json;

use support::eventually;
use support::provider::Provider;
use support::reply::Reply;
use support::roster;
use support::sidecar::Sidecar;

const KIMI: &str = "/kimi/v1/chat/completions";
/// 2026-11-30 13:20:05 UTC.
const NOW: f64 = 1_796_044_805.0;
const HOSTILE: &str =
    "</bdi></summary><script>document.title='pwned'</script><img id=pwned src=x onerror=\"document.title='pwned'\">";

/// Chromium with a profile of its own. `arguments`: what it shall do; the last one is the address.
fn chromium(arguments: &[&str]) -> String {
    let profile = tempfile::tempdir().expect("a folder");
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-extensions",
        ])
        .args([
            "--disable-dev-shm-usage",
            "--disable-breakpad",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .output()
        .expect("chromium: run `make chromium`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The document as it stands when its scripts have run.
fn dom(address: &str) -> String {
    chromium(&["--dump-dom", address])
}

/// Leaves a picture for people and says where.
fn picture(name: &str, file: &Path, width: u32, height: u32, is_dark: bool) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    std::fs::create_dir_all(&folder).expect("a folder");
    let picture = folder.join(format!("{name}.png"));
    let screenshot = format!("--screenshot={}", picture.display());
    let size = format!("--window-size={width},{height}");
    let scheme = format!("--blink-settings=preferredColorScheme={}", if is_dark { 0 } else { 1 });
    chromium(&[&screenshot, &size, &scheme, &format!("file://{}", file.display())]);
    let png = std::fs::read(&picture).expect("a picture");
    let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((side(16), side(20)), (width, height), "{name}");
    picture
}

fn decision(n: usize, arm: &str) -> Decision {
    let action = match arm {
        "narrow" => "narrowed",
        "bypass" => "full",
        arm => arm,
    };
    let names = |count: usize| roster::TOOLS.iter().take(count).map(|(name, _)| (*name).to_owned());
    Decision {
        ts: NOW - 7.0 * n as f64,
        request: format!("5f2c{n:012x}"),
        conversation: "9a1b2c3d4e5f6071".into(),
        turn: 2,
        call: 1,
        upstream: if n.is_multiple_of(3) { "gemini" } else { "kimi" }.into(),
        model: if n.is_multiple_of(3) { "gemini-3-pro" } else { "kimi-k3" }.into(),
        arm: arm.into(),
        action: action.into(),
        binding: if arm == "narrow" { "append" } else { "" }.into(),
        status: 200,
        legs: 1,
        block: Some(Block { hash: "b".into(), cause: Some("needed".into()), tokens: 2_150 }),
        roster: Roster {
            count: 20,
            hash: "r".into(),
            tokens: 9_273,
            tool_tokens: names(20).map(|name| ToolTokens { name, tokens: 460, always: false }).collect(),
            ..Roster::default()
        },
        bound: if matches!(arm, "narrow" | "shadow") { names(8).collect() } else { Vec::new() },
        selection: names(12)
            .enumerate()
            .map(|(place, name)| Scored { name, score: 0.872 - 0.006 * place as f32 })
            .collect(),
        query: Some(Query { hash: "0011223344556677".into(), ..Query::default() }),
        called: vec![Called { name: "send_email".into(), verdict: "bound".into(), rank: Some(1) }],
        usage: Some(Used { prompt: 10_400, cached: 8_700, completion: 212 }),
        cost_usd: Some(0.0109),
        saved: Saved { tokens: 7_123, usd: Some(0.0182) },
        timings_us: Timings { embed: Some(21_400), rank: Some(310), total: 22_900, upstream: 3_410_000 },
        ..Decision::default()
    }
}

/// A day of 400 requests in all arms, and the last of them in `decisions`.
fn busy(decisions: &mut Vec<Decision>) -> Today {
    let mut today = Today::default();
    for n in 0..400 {
        let arm = ["narrow", "narrow", "holdout", "shadow", "bypass"][n % 5];
        let mut one = decision(n, arm);
        if arm == "shadow" && n % 20 == 3 {
            one.called = vec![Called { name: "lock_door".into(), verdict: "withheld".into(), rank: Some(14) }];
        }
        if arm == "bypass" {
            (one.reason, one.saved) = ("deadline".into(), Saved::default());
        }
        if arm == "holdout" {
            (one.saved, one.cost_usd) = (Saved::default(), Some(0.0331));
        }
        if one.upstream == "gemini" && arm == "narrow" {
            one.saved = Saved { tokens: 7_123, usd: Some(-0.021) };
        }
        today.add(&one);
        if decisions.len() < 12 {
            decisions.push(one);
        }
    }
    today
}

fn upstreams(today: &Today) -> Vec<Upstream> {
    let upstream = |name: &str, url: &str, mode, percent| Upstream {
        name: name.into(),
        prefix: format!("/{name}"),
        url: url.into(),
        mode,
        percent,
        today: today.of(name, NOW),
    };
    vec![
        upstream("kimi", "https://api.moonshot.ai", "narrow", 90),
        upstream("gemini", "https://generativelanguage.googleapis.com", "shadow", 100),
    ]
}

fn corrections() -> Vec<(String, Correction)> {
    let of = |factor, error, requests| Correction { factor, error, requests };
    vec![("kimi-k2.6".into(), of(1.083, 0.021, 412)), ("gemini-3-pro".into(), of(0.941, 0.05, 7))]
}

fn file(folder: &Path, name: &str, view: &View<'_>) -> PathBuf {
    let path = folder.join(format!("{name}.html"));
    std::fs::write(&path, page(view).0).expect("a page");
    path
}

#[test]
fn it_is_drawn_wide_and_narrow_light_and_dark_full_and_empty() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut decisions = Vec::new();
    let today = busy(&mut decisions);
    let view = View {
        now: NOW,
        embedder: Embedder::Ready,
        upstreams: upstreams(&today),
        corrections: corrections(),
        decisions: &decisions,
    };
    let busy = file(folder.path(), "busy", &view);
    picture("wide", &busy, 1280, 1400, false);
    picture("dark", &busy, 1280, 1400, true);
    picture("telephone", &busy, 390, 2200, false);

    let mut arabic = decision(1, "narrow");
    arabic.query = Some(Query {
        hash: "aa".into(),
        lang: Some("ar".into()),
        text: Some("احذف جهة الاتصال «سارة» من القائمة، ثم أرسل بريدًا إلى team@example.com بعنوان Q4 report.".into()),
        ..Query::default()
    });
    arabic
        .called
        .push(Called { name: "حذف_جهة_الاتصال".into(), verdict: "withheld".into(), rank: Some(17) });
    let decisions = [arabic, decision(2, "shadow")];
    let view = View { decisions: &decisions, upstreams: upstreams(&today), corrections: corrections(), ..view };
    let arabic = file(folder.path(), "arabic", &view);
    let html = std::fs::read_to_string(&arabic).expect("the page").replacen("<details ", "<details open ", 1);
    std::fs::write(&arabic, html).expect("the page");
    picture("arabic", &arabic, 1280, 1700, false);
    picture("arabic-telephone", &arabic, 390, 2900, true);

    let today = Today::default();
    let view = View {
        now: NOW,
        embedder: Embedder::Absent,
        upstreams: upstreams(&today),
        corrections: Vec::new(),
        decisions: &[],
    };
    let empty = file(folder.path(), "empty", &view);
    picture("empty", &empty, 1280, 800, false);
    assert!(dom(&format!("file://{}", empty.display())).contains("No request yet."));
}

#[test]
fn hostile_names_and_messages_are_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut hostile = decision(1, "narrow");
    for text in
        [&mut hostile.upstream, &mut hostile.model, &mut hostile.reason, &mut hostile.request, &mut hostile.binding]
    {
        *text = HOSTILE.into();
    }
    (hostile.conversation, hostile.action) = (HOSTILE.into(), HOSTILE.into());
    hostile.block = Some(Block { hash: HOSTILE.into(), cause: Some(HOSTILE.into()), tokens: 1 });
    hostile.bound = vec![HOSTILE.into()];
    hostile.selection = vec![Scored { name: HOSTILE.into(), score: f32::NAN }];
    hostile.discovered = vec![HOSTILE.into()];
    hostile.called = vec![Called { name: HOSTILE.into(), verdict: HOSTILE.into(), rank: None }];
    hostile.query = Some(Query { hash: HOSTILE.into(), text: Some(format!("\u{202e}{HOSTILE}")), ..Query::default() });
    hostile.roster.tool_tokens = vec![ToolTokens { name: HOSTILE.into(), ..ToolTokens::default() }];
    let mut today = Today::default();
    today.add(&hostile);
    let mut upstreams = upstreams(&today);
    upstreams[0].name = HOSTILE.into();
    upstreams[0].prefix = HOSTILE.into();
    upstreams[0].url = HOSTILE.into();
    upstreams[0].today = today.of(HOSTILE, NOW);
    let decisions = [hostile];
    let mut corrections = corrections();
    corrections[0].0 = HOSTILE.into();
    let view = View { now: NOW, embedder: Embedder::Loading, upstreams, corrections, decisions: &decisions };
    let (html, policy) = page(&view);
    for markup in ["<img", "<script>document", " onerror=\"", "javascript:", " style="] {
        assert!(!html.contains(markup), "{markup}");
    }
    assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{policy}");
    let dom = dom(&format!("file://{}", file(folder.path(), "hostile", &view).display()));
    assert!(dom.contains("<title>Packlight</title>"), "a script ran");
    assert!(!dom.contains("id=\"pwned\""), "an element came to be");
    assert!(dom.contains("<blockquote dir=\"auto\">"));
}

#[test]
fn a_sidecar_shows_what_it_does_and_the_page_keeps_itself_fresh() {
    let provider = Provider::new()
        .reply(Reply::call("get_weather", json!({})).usage(1000, 400, 20))
        .reply(Reply::call("lock_door", json!({})).usage(900, 0, 10))
        .start();
    let sidecar = Sidecar::over(&provider).set("narrow.max_retrieved_tools", "3").set("log.text", "true").start();
    let empty = sidecar.admin("/");
    assert_eq!(empty.status, 200);
    assert_eq!(empty.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(empty.header("cache-control"), Some("no-store"));
    assert!(
        empty
            .header("content-security-policy")
            .is_some_and(|policy| policy.starts_with("default-src 'none'; style-src 'sha256-"))
    );
    assert!(empty.text().contains("No request yet.") && empty.text().contains("narrow"));

    for message in ["Weather report: temperature, rain forecast.", "التقرير عن الطقس weather rain"] {
        let answer = sidecar.post(KIMI, &roster::ask(message).to_string());
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let html = eventually("both decisions", || {
        Some(sidecar.admin("/").text()).filter(|html| html.matches("<details ").count() == 2)
    });
    // Without a script: the arm, the tokens as reported, who was missed, the message.
    for shown in
        ["20 → 3 tools", "get_weather", "lock_door</bdi>: missed", "<td>narrow</td>", "1.90k", "dir=\"auto\">التقرير"]
    {
        assert!(html.contains(shown), "{shown} is not on the page");
    }
    // A browser runs the one script that the policy names, and nothing is refused by it.
    let seen = dom(&format!("http://{}/", sidecar.admin));
    assert!(seen.contains("class=\"decision missed\"") && seen.contains("id=\"stale\" class=\"bad\" hidden"), "{seen}");
}
