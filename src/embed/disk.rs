//! Rows on disk, one append-only file per embedder, shared by processes without a lock. NOT an index: a build that
//! misses rows reads the file once. A torn, foreign or damaged record is skipped; a bad file costs vectors, no more.
//!
//! A record: `magic[4] key[32] numbers[dimensions * f32 LE] checksum[8]`. The checksum is seeded with the embedder's
//! identity, so a record of another embedder is none. Records are found by their magic, so what follows a torn one is
//! read again.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::rows::{Key, Numbers, plausible};

const MAGIC: [u8; 4] = *b"PLv1";
const KEY: usize = size_of::<Key>();
const CHECKSUM: usize = size_of::<u64>();
/// A file that has grown past this is begun anew: 20,000 tools of 384 dimensions, two rows each.
const MOST: u64 = 64 << 20;
const PIECE: u64 = 1 << 18;

/// The file of one embedder.
#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
    seed: u64,
    dimensions: usize,
    complained: AtomicBool,
}

impl Disk {
    /// `model`: the embedder's identity. Touches nothing yet.
    pub(super) fn new(folder: &Path, model: &str, dimensions: usize) -> Self {
        Self {
            path: folder.join(file_name(model, dimensions)),
            seed: xxh3_64(format!("{model}\0{dimensions}").as_bytes()),
            dimensions,
            complained: AtomicBool::new(false),
        }
    }

    /// Those of the wanted rows that are in the file. Blocking.
    pub(super) fn find(&self, wanted: &HashSet<Key>) -> HashMap<Key, Numbers> {
        let mut found = HashMap::new();
        self.told(self.scan(&|key| wanted.contains(key), wanted.len(), &mut found));
        found
    }

    /// Every row that is in the file. Blocking.
    pub(super) fn all(&self) -> HashMap<Key, Numbers> {
        let mut found = HashMap::new();
        self.told(self.scan(&|_| true, usize::MAX, &mut found));
        found
    }

    /// Adds the rows in one write. Blocking.
    pub(super) fn append(&self, rows: &[(Key, Numbers)]) {
        let records: Vec<u8> = rows.iter().flat_map(|(key, numbers)| self.record(key, numbers)).collect();
        if let Err(error) = self.write(&records) {
            self.complain("written", &error);
        }
    }

    fn write(&self, records: &[u8]) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        if std::fs::metadata(&self.path).is_ok_and(|file| file.is_file() && file.len() > MOST) {
            std::fs::remove_file(&self.path)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.path)?;
        // One write: appended records of several processes do not mix. The rest after a short one would be torn.
        match file.write(records)? {
            whole if whole == records.len() => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::WriteZero, "the disk is full")),
        }
    }

    fn record(&self, key: &Key, numbers: &[f32]) -> Vec<u8> {
        let mut record = Vec::with_capacity(self.record_len());
        record.extend(MAGIC);
        record.extend(key);
        record.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        let checksum = xxh3_64_with_seed(&record, self.seed);
        record.extend(checksum.to_le_bytes());
        record
    }

    fn record_len(&self) -> usize {
        MAGIC.len() + KEY + self.dimensions * size_of::<f32>() + CHECKSUM
    }

    /// A file that is not there yet is no failure.
    fn told(&self, read: io::Result<()>) {
        match read {
            Err(error) if error.kind() != io::ErrorKind::NotFound => self.complain("read", &error),
            Ok(()) | Err(_) => {}
        }
    }

    /// Until `most` rows that are `wanted` are found.
    fn scan(&self, wanted: &dyn Fn(&Key) -> bool, most: usize, found: &mut HashMap<Key, Numbers>) -> io::Result<()> {
        let file = File::open(&self.path)?;
        let mut left = MOST.saturating_mul(2);
        let mut window = Vec::new();
        loop {
            let read = (&file).take(PIECE.min(left)).read_to_end(&mut window)?;
            left -= (read as u64).min(left);
            let mut rest = window.as_slice();
            while rest.len() >= self.record_len() {
                match self.parse(rest) {
                    Some((key, numbers)) => {
                        if wanted(&key) {
                            found.insert(key, numbers);
                        }
                        rest = rest.get(self.record_len()..).unwrap_or_default();
                    }
                    None => rest = next_magic(rest),
                }
            }
            if read == 0 || found.len() == most {
                return Ok(());
            }
            let parsed = window.len() - rest.len();
            window.drain(..parsed);
        }
    }

    /// The record that `bytes` begin with.
    fn parse(&self, bytes: &[u8]) -> Option<(Key, Numbers)> {
        let body_len = self.record_len() - CHECKSUM;
        let (body, after) = bytes.split_at_checked(body_len)?;
        let checksum = u64::from_le_bytes(*after.first_chunk()?);
        let (key, numbers) = body.strip_prefix(&MAGIC)?.split_first_chunk::<KEY>()?;
        if checksum != xxh3_64_with_seed(body, self.seed) {
            return None;
        }
        let numbers: Vec<f32> = numbers.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        plausible(&numbers).then(|| (*key, Arc::from(numbers)))
    }

    /// Once: a full disk would fill the log as well.
    fn complain(&self, what: &str, error: &io::Error) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            tracing::warn!(path = %self.path.display(), %error, "vectors cannot be {what}: embedding without them");
        }
    }
}

/// How many dimensions the newest file of this embedder has: an embedder behind HTTP tells only with its first answer.
/// `model`: identity without the dimensions.
pub(super) fn known_dimensions(folder: &Path, model: &str) -> Option<usize> {
    let start = file_start(model);
    let files = std::fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let known = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        let dimensions = name.strip_prefix(&start)?.strip_suffix(".rows")?.parse().ok()?;
        Some((file.metadata().ok()?.modified().ok()?, dimensions))
    });
    known.max().map(|(_, dimensions)| dimensions)
}

fn file_name(model: &str, dimensions: usize) -> String {
    format!("{}{dimensions}.rows", file_start(model))
}

/// Readable, and distinct by the hash. A model's identity may end with its dimensions: not so in the name's hash.
fn file_start(model: &str) -> String {
    let plain: String = model.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(48).collect();
    format!("vectors-{plain}-{:016x}-", xxh3_64(model.as_bytes()))
}

/// From the next magic after the first byte; what is too short to hold one stays.
fn next_magic(bytes: &[u8]) -> &[u8] {
    let at = bytes.windows(MAGIC.len()).skip(1).position(|window| window == MAGIC);
    let skip = at.map_or(bytes.len().saturating_sub(MAGIC.len() - 1), |at| at + 1);
    bytes.get(skip..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: u8) -> (Key, Numbers) {
        ([n; 32], Arc::from([f32::from(n) / 256.0, 0.5, -0.5]))
    }

    fn keys(rows: &[u8]) -> HashSet<Key> {
        rows.iter().map(|n| [*n; 32]).collect()
    }

    #[test]
    fn rows_come_back_and_other_embedders_do_not_see_them() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(&folder.path().join("new"), "m", 3);
        assert!(disk.find(&keys(&[1])).is_empty());
        disk.append(&[row(1), row(2)]);
        disk.append(&[row(3)]);
        let found = Disk::new(&folder.path().join("new"), "m", 3).find(&keys(&[1, 3, 9]));
        assert_eq!(found, HashMap::from([row(1), row(3)]));
        assert_eq!(disk.all().len(), 3);
        let mut other = Disk::new(&folder.path().join("new"), "other", 3);
        other.path = disk.path.clone();
        assert!(other.find(&keys(&[1, 3])).is_empty());
        assert_eq!(known_dimensions(&folder.path().join("new"), "m"), Some(3));
        assert_eq!(known_dimensions(&folder.path().join("new"), "n"), None);
    }

    #[test]
    fn torn_and_damaged_records_cost_only_themselves() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(folder.path(), "m", 3);
        disk.append(&[row(1), row(2), row(3)]);
        let whole = std::fs::read(&disk.path).unwrap();
        let len = disk.record_len();
        for cut in 0..len {
            // Row 2 ends early and 3 follows.
            let torn = [&whole[..len + cut], &whole[2 * len..]].concat();
            std::fs::write(&disk.path, torn).unwrap();
            assert_eq!(disk.find(&keys(&[1, 2, 3])), HashMap::from([row(1), row(3)]), "cut {cut}");
        }
        for at in len..2 * len {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x20;
            std::fs::write(&disk.path, damaged).unwrap();
            assert_eq!(disk.find(&keys(&[1, 2, 3])), HashMap::from([row(1), row(3)]), "at {at}");
        }
    }

    #[test]
    fn long_rubbish_is_crossed() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(folder.path(), "m", 3);
        let rubbish: Vec<u8> = (0..PIECE as usize * 2 + 7).map(|i| MAGIC[i % 3]).collect();
        std::fs::write(&disk.path, rubbish).unwrap();
        disk.append(&[row(1)]);
        assert_eq!(disk.find(&keys(&[1])), HashMap::from([row(1)]));
    }

    #[test]
    fn numbers_that_no_embedder_makes_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(folder.path(), "m", 3);
        disk.append(&[([1; 32], Arc::from([f32::NAN, 0.0, 0.0])), ([2; 32], Arc::from([0.0; 3]))]);
        assert!(disk.find(&keys(&[1, 2])).is_empty());
    }

    #[test]
    fn a_file_that_cannot_be_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(folder.path(), "m", 3);
        std::fs::create_dir(&disk.path).unwrap();
        disk.append(&[row(1)]);
        assert!(disk.find(&keys(&[1])).is_empty());
    }
}
