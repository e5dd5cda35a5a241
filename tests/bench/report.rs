//! A log of a million made-up requests and how long `report` takes over it: `cargo bench --bench report`. The binary is
//! the shipped one, in a process of its own, so that its memory is its own. NOT the truth of the figures: tests/report.rs.
//!
//! `-- --records N` makes another number; `-- --keep FILE` leaves the log there.
#![allow(
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a bench prints, and stops when something is wrong"
)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use packlight::decision::{Block, Called, Decision, Query, Roster, Saved, Scored, ToolTokens, Used};

const TOOLS: usize = 60;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value =
        |name: &str| arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1));
    let records = value("--records").map_or(1_000_000, |number| number.parse().expect("a number of records"));
    let folder = tempfile::tempdir().expect("a folder");
    let log = value("--keep").map_or_else(|| folder.path().join("decisions.jsonl"), PathBuf::from);
    let start = Instant::now();
    write(&log, records);
    let bytes = log.metadata().expect("the log").len();
    println!("{records} records, {} MB, made in {:.1} s", bytes >> 20, start.elapsed().as_secs_f64());

    let page = folder.path().join("report.html");
    let start = Instant::now();
    let ended = Command::new("sh")
        .args([
            "-c",
            "\"$0\" \"$@\" & pid=$!; while kill -0 $pid 2>/dev/null; do grep VmHWM /proc/$pid/status \
               >&2 2>/dev/null; sleep 0.05; done; wait $pid",
        ])
        .arg(env!("CARGO_BIN_EXE_packlight"))
        .arg("report")
        .arg(&log)
        .arg("--html")
        .arg(&page)
        .output()
        .expect("the binary runs");
    let took = start.elapsed().as_secs_f64();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let memory = String::from_utf8_lossy(&ended.stderr);
    let memory = memory.lines().filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).max();
    println!("{}", String::from_utf8_lossy(&ended.stdout));
    println!(
        "report: {took:.1} s, {:.0} records a second, {:.0} MB/s, at most {} MB of memory",
        records as f64 / took,
        bytes as f64 / took / 1e6,
        memory.unwrap_or_default() >> 10
    );
    if records == 1_000_000 {
        assert!(took < 60.0, "a million records take less than a minute");
    }
}

/// Three days: shadow, then ten per cent narrowed, then ninety. What is called, and where it ranked, is made up.
fn write(path: &Path, records: usize) {
    let mut file = BufWriter::new(File::create(path).expect("the log"));
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let names: Vec<String> =
        (0..TOOLS).map(|n| format!("{}_{}", ["get", "list", "update", "send"][n % 4], NOUNS[n / 4])).collect();
    for n in 0..records {
        // Six requests a conversation, twenty conversations at a time.
        let conversation = n / 120 * 20 + n % 20;
        let call = n % 120 / 20;
        let day = n * 3 / records.max(1);
        let group = Dice(conversation as u64 * 0x2545_f491_4f6c_dd1d + 1).below(100);
        let (arm, action, reason) = match day {
            _ if n % 41 == 0 => ("bypass", "full", "small_roster"),
            0 => ("shadow", "shadow", ""),
            1 if group < 10 => ("narrow", "narrowed", ""),
            2 if group < 90 => ("narrow", "narrowed", ""),
            _ => ("holdout", "holdout", ""),
        };
        let decision = decision(n, conversation, call, arm, action, reason, &names, &mut dice);
        file.write_all(decision.line().as_bytes()).expect("written");
        file.write_all(b"\n").expect("written");
    }
    file.flush().expect("written");
}

#[allow(clippy::too_many_arguments, reason = "the fields of one made-up record")]
fn decision(
    n: usize,
    conversation: usize,
    call: usize,
    arm: &str,
    action: &str,
    reason: &str,
    names: &[String],
    dice: &mut Dice,
) -> Decision {
    let narrowed = arm == "narrow";
    let chooses = call == 0 && matches!(arm, "narrow" | "shadow");
    // Ranks fall off fast, with a long tail.
    let rank = 1 + (dice.below(100) * dice.below(100) * dice.below(100) / 24_000) as usize;
    let verdict = match rank {
        13.. if narrowed => "discovered",
        13.. => "withheld",
        _ => "bound",
    };
    let tool = names.get((rank * 7 + conversation) % TOOLS).cloned().unwrap_or_default();
    let ranked =
        |count: usize| (0..count).filter_map(|place| names.get((place * 7 + 7 + conversation) % TOOLS).cloned());
    let prompt = 3_000 + 900 * call as u64 + if narrowed { 4_300 } else { 12_000 } + dice.below(500);
    let cached = if call == 0 { 0 } else { prompt - 1_400 };
    let completion = 60 + dice.below(200);
    let lang = ["en", "en", "en", "ar", "de", "zh"].get(conversation % 6).copied().unwrap_or_default();
    Decision {
        ts: 1_795_737_600.0 + n as f64 * 259_000.0 / 1_000_000.0,
        request: format!("{n:016x}"),
        conversation: format!("{:016x}", (conversation as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        turn: 1,
        call: call + 1,
        upstream: "kimi".into(),
        wire: "openai".into(),
        model: "kimi-k3".into(),
        mode: if arm == "shadow" { "shadow" } else { "narrow" }.into(),
        arm: arm.into(),
        action: action.into(),
        reason: reason.into(),
        binding: if narrowed { "append" } else { "" }.into(),
        status: 200,
        legs: 1 + usize::from(verdict == "discovered"),
        block: chooses.then(|| Block { hash: "ab12".into(), cause: Some("first".into()), tokens: 4_300 }),
        roster: Roster {
            provider_tokens: None,
            count: TOOLS,
            hash: "cd34".into(),
            tokens: 12_000,
            find_tools_tokens: 380,
            tool_tokens: if n == 0 {
                names.iter().map(|name| ToolTokens { name: name.clone(), tokens: 200, always: false }).collect()
            } else {
                Vec::new()
            },
        },
        history_tokens: 3_000 + 900 * call as u64,
        bound: if chooses || narrowed { ranked(16).collect() } else { Vec::new() },
        selection: if chooses { ranked(20).map(|name| Scored { name, score: 0.8 }).collect() } else { Vec::new() },
        query: Some(Query { hash: format!("{:016x}", conversation * 31), lang: Some(lang.into()), ..Query::default() }),
        searches: if narrowed && verdict == "discovered" { vec!["found".into()] } else { Vec::new() },
        called: vec![Called { name: tool, verdict: verdict.into(), rank: Some(rank) }],
        usage: Some(Used { prompt, cached, completion }),
        cost_usd: Some(((prompt - cached) as f64 * 3.0 + cached as f64 * 0.3 + completion as f64 * 15.0) / 1e6),
        saved: match arm {
            "narrow" | "shadow" => Saved { tokens: 7_320, usd: Some(if call == 0 { 0.0231 } else { 0.0023 }) },
            _ => Saved::default(),
        },
        ..Decision::default()
    }
}

const NOUNS: [&str; 15] = [
    "contact", "company", "deal", "invoice", "task", "note", "calendar", "email", "file", "report", "user", "team",
    "tag", "webhook", "field",
];

/// xorshift64*: the same log every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % most
    }
}
