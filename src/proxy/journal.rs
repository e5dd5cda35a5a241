//! The decision log: one JSON line a request, written by a thread of its own. A disk
//! that is full or slow drops records and counts them; it never holds up a request.
//! NOT what a record says (`outcome`).

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::decision::Decision;
use crate::turn::roster::Roster;

/// Records that wait for the disk. Each keeps its roster, so at 44 tools new with every request they are 15 MB, at those
/// that an agent repeats half a megabyte; a disk may take no byte for a second at 500 requests a second.
const WAITING: usize = 512;
/// A file that is longer is set aside.
const LONGEST: u64 = 256 << 20;
/// How long the end waits for the disk.
const LONGEST_END: Duration = Duration::from_secs(2);
/// Rosters of which a file's writer knows that it has told them.
const ROSTERS: usize = 4096;
/// Files set aside: `F.1` is the youngest.
const KEPT: usize = 4;

/// A record, and the roster whose tools it shall name if nobody has in this file.
type Record = Box<(Decision, Option<Arc<Roster>>)>;

/// Where decision records go. Dropping it writes what waits.
#[derive(Debug)]
pub struct Journal {
    records: Option<SyncSender<Record>>,
    writer: Option<JoinHandle<()>>,
    /// Says that the writer has ended.
    written: Mutex<Receiver<()>>,
    dropped: Arc<AtomicU64>,
}

impl Journal {
    /// Appends to the file at `path`, which must be writable now.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = Log::open(path, LONGEST)?;
        let (records, waiting) = sync_channel(WAITING);
        let dropped = Arc::new(AtomicU64::new(0));
        let (end, written) = sync_channel(1);
        let counted = dropped.clone();
        let writer = std::thread::Builder::new().name("packlight-journal".to_owned()).spawn(move || {
            write(file, &waiting, &counted);
            let _ = end.send(());
        })?;
        Ok(Self { records: Some(records), writer: Some(writer), written: Mutex::new(written), dropped })
    }

    /// Takes one record; never waits. `roster`: the sizes of its tools are told once in a file.
    pub fn record(&self, decision: Decision, roster: Option<Arc<Roster>>) {
        let Some(records) = &self.records else { return };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            records.try_send(Box::new((decision, roster)))
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records that were lost so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        drop(self.records.take());
        let Some(writer) = self.writer.take() else { return };
        // A disk that hangs does not hold up the end: what it has not taken by then is lost.
        match self.written.get_mut().unwrap_or_else(PoisonError::into_inner).recv_timeout(LONGEST_END) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                let _ = writer.join();
            }
            Err(RecvTimeoutError::Timeout) => tracing::warn!("decision records are lost: the log takes none"),
        }
    }
}

/// Writes what comes, and flushes when nothing more waits.
fn write(mut log: Log, waiting: &Receiver<Record>, dropped: &AtomicU64) {
    let mut failing = false;
    while let Ok(record) = waiting.recv() {
        let mut records = 1;
        let mut written = log.record(*record);
        while written.is_ok()
            && let Ok(record) = waiting.try_recv()
        {
            records += 1;
            written = log.record(*record);
        }
        match written.and_then(|()| log.file.flush()) {
            Ok(()) => failing = false,
            Err(error) => {
                dropped.fetch_add(records, Ordering::Relaxed);
                if !failing {
                    tracing::warn!(%error, "decision records are lost: the log cannot be written");
                }
                failing = true;
                log.reopen();
            }
        }
    }
}

struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    length: u64,
    longest: u64,
    /// Rosters whose tools this file names.
    told: HashSet<u64>,
}

impl Log {
    fn open(path: &Path, longest: u64) -> io::Result<Self> {
        // A pipe opened for writing alone waits for its reader, and whoever starts this with it.
        let is_pipe = std::fs::metadata(path).is_ok_and(|known| is_pipe(&known.file_type()));
        let file = OpenOptions::new().read(is_pipe).create(true).append(true).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), length, longest, told: HashSet::new() })
    }

    /// Writes a record; with the sizes of its roster's tools if this file does not name them yet.
    fn record(&mut self, (mut decision, roster): (Decision, Option<Arc<Roster>>)) -> io::Result<()> {
        let plain = decision.line();
        let Some(roster) = roster.filter(|roster| !roster.is_empty()) else { return self.line(&plain) };
        let digest = roster.sizes().digest();
        if self.told.contains(&digest) && !self.is_full_with(&plain) {
            return self.line(&plain);
        }
        decision.roster.tool_tokens = roster.tool_tokens();
        self.line(&decision.line())?;
        if self.told.len() >= ROSTERS {
            self.told.clear();
        }
        self.told.insert(digest);
        Ok(())
    }

    /// Would this line make the file too long?
    fn is_full_with(&self, line: &str) -> bool {
        self.length > 0 && self.length + line.len() as u64 >= self.longest
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        if self.is_full_with(line) {
            self.rotate()?;
        }
        self.file.write_all(line.as_bytes())?;
        self.file.write_all(b"\n")?;
        self.length += line.len() as u64 + 1;
        Ok(())
    }

    /// What could not be written is let go, or it would be tried again with every line.
    fn reopen(&mut self) {
        if let Ok(fresh) = Self::open(&self.path, self.longest) {
            let old = std::mem::replace(self, fresh);
            let _ = old.file.into_parts();
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file.flush()?;
        for n in (1..KEPT).rev() {
            let _ = std::fs::rename(self.aside(n), self.aside(n + 1));
        }
        std::fs::rename(&self.path, self.aside(1))?;
        *self = Self::open(&self.path, self.longest)?;
        Ok(())
    }

    fn aside(&self, n: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{n}"));
        name.into()
    }
}

#[cfg(unix)]
fn is_pipe(kind: &std::fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(kind)
}

#[cfg(not(unix))]
fn is_pipe(_: &std::fs::FileType) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::policy::{Facts, test_policy};
    use crate::wire::view::{ToolKind, ToolView};

    #[test]
    fn a_rosters_tools_are_told_once_in_every_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut log = Log::open(&folder.path().join("decisions.jsonl"), 3000).expect("a file");
        let tool = |name: &'static str, text: &'static str| ToolView {
            kind: ToolKind::Function,
            name: name.into(),
            description: "".into(),
            parameters: None,
            text: text.into(),
            group: 0,
        };
        let roster = |text| Arc::new(Roster::new(&[tool("a", text)], &test_policy(), &|_| Facts::default()));
        let rosters = [roster("aaaa"), roster("bbbb")];
        for n in 0..12 {
            log.record((Decision::default(), rosters.get(n % 2).cloned())).expect("written");
        }
        log.file.flush().expect("flushed");
        for path in [log.path.clone(), log.aside(1)] {
            let text = std::fs::read_to_string(&path).expect("a file");
            let records: Vec<Decision> = text.lines().map(|line| Decision::read(line).expect("a record")).collect();
            let told = records.iter().filter(|record| !record.roster.tool_tokens.is_empty()).count();
            assert_eq!(told, records.len().min(2), "of {}", records.len());
        }
    }

    #[test]
    fn a_long_file_is_set_aside_and_the_oldest_is_let_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("decisions.jsonl");
        let mut log = Log::open(&path, 19).expect("a file");
        for n in 0..14 {
            log.line(&format!("line {n:02} x")).expect("written");
        }
        log.file.flush().expect("flushed");
        let read = |n: usize| std::fs::read_to_string(log.aside(n)).unwrap_or_default();
        assert_eq!(std::fs::read_to_string(&path).expect("the newest"), "line 13 x\n");
        assert_eq!((read(1), read(4)), ("line 12 x\n".to_owned(), "line 09 x\n".to_owned()));
        assert_eq!(read(5), "", "four are kept");
    }

    #[test]
    fn a_full_disk_drops_records_and_counts_them() {
        let journal = Journal::open(Path::new("/dev/full")).expect("a device that is always full");
        journal.record(Decision::default(), None);
        let dropped = journal.dropped.clone();
        drop(journal);
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    }
}
