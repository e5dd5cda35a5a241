//! Runs a target: its seeds, then what the mutator makes of them, until the time
//! is up. An input that breaks it is kept in `tests/fuzz/artifacts`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::mutate::{Random, mutate};

/// An input that takes longer is a finding: none is over 16 KiB.
const SLOW: Duration = Duration::from_secs(2);

/// Runs `target` as the arguments say. It panics at what must not be; `true` means that the input got far, and more
/// inputs are made from it. `seeds`: folders below `tests/wire`, and the endings of their files.
pub fn run(name: &str, seeds: &[(&str, &[&str])], target: fn(&[u8]) -> bool) {
    let (mut seconds, mut seed, mut files) = (20, 1, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number");
        match argument.as_str() {
            "--seconds" => seconds = number(),
            "--seed" => seed = number(),
            _ => files.push(PathBuf::from(argument)),
        }
    }
    if !files.is_empty() {
        for file in files {
            target(&std::fs::read(&file).expect("the input"));
            println!("{name}: {} holds", file.display());
        }
        return;
    }

    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pool: Vec<Vec<u8>> = vec![Vec::new()];
    for (folder, endings) in seeds {
        let folder = home.join("../wire").join(folder);
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        paths.retain(|path| endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)));
        pool.extend(paths.iter().filter_map(|path| std::fs::read(path).ok()));
    }
    let given = pool.len();
    println!("{name}: {} seeds, {seconds} s, --seed {seed}", given - 1);

    let mut random = Random::new(seed);
    let (start, mut count, mut far) = (Instant::now(), 0u64, 0u64);
    for input in pool.clone() {
        check(home, name, &input, target);
    }
    while start.elapsed() < Duration::from_secs(seconds) {
        let (one, other) = (random.below(pool.len()), random.below(pool.len()));
        let input = mutate(&mut random, &pool[one], &pool[other]);
        count += 1;
        if check(home, name, &input, target) {
            far += 1;
            // The given seeds stay; what came of them takes turns.
            if pool.len() < given + 256 {
                pool.push(input);
            } else {
                let at = given + random.below(256);
                pool[at] = input;
            }
        }
    }
    println!("{name}: {count} inputs hold, {far} of them got far");
}

fn check(home: &Path, name: &str, input: &[u8], target: fn(&[u8]) -> bool) -> bool {
    let start = Instant::now();
    let result = std::panic::catch_unwind(|| target(input));
    let took = start.elapsed();
    let far = *result.as_ref().unwrap_or(&false);
    if result.is_ok() && took < SLOW {
        return far;
    }
    let hash = input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    let folder = home.join("artifacts");
    std::fs::create_dir_all(&folder).expect("the folder of artifacts");
    let path = folder.join(format!("{name}-{hash:016x}"));
    std::fs::write(&path, input).expect("the artifact");
    eprintln!("{name}: broken after {took:?} by {}", path.display());
    std::process::exit(1);
}
