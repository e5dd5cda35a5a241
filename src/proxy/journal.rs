//! The decision log: one JSON line a request, written by a thread of its own. A disk
//! that is full or slow drops records and counts them; it never holds up a request.
//! NOT what a record says (`outcome`).

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Records that wait for the disk; at 1 KB each, 4 MB.
const WAITING: usize = 4096;
/// A file that is longer is set aside.
const LONGEST: u64 = 256 << 20;
/// Files set aside: `F.1` is the youngest.
const KEPT: usize = 4;

/// Where decision records go. Dropping it writes what waits.
#[derive(Debug)]
pub struct Journal {
    lines: Option<SyncSender<String>>,
    writer: Option<JoinHandle<()>>,
    dropped: Arc<AtomicU64>,
}

impl Journal {
    /// Appends to the file at `path`, which must be writable now.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = Log::open(path, LONGEST)?;
        let (lines, waiting) = sync_channel(WAITING);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = dropped.clone();
        let writer = std::thread::Builder::new()
            .name("packlight-journal".to_owned())
            .spawn(move || write(file, &waiting, &counted))?;
        Ok(Self { lines: Some(lines), writer: Some(writer), dropped })
    }

    /// Takes one record; never waits.
    pub fn record(&self, line: String) {
        let Some(lines) = &self.lines else { return };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = lines.try_send(line) {
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
        drop(self.lines.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// Writes what comes, and flushes when nothing more waits.
fn write(mut log: Log, waiting: &Receiver<String>, dropped: &AtomicU64) {
    let mut failing = false;
    while let Ok(line) = waiting.recv() {
        let mut lines = 1;
        let mut written = log.line(&line);
        while written.is_ok()
            && let Ok(line) = waiting.try_recv()
        {
            lines += 1;
            written = log.line(&line);
        }
        match written.and_then(|()| log.file.flush()) {
            Ok(()) => failing = false,
            Err(error) => {
                dropped.fetch_add(lines, Ordering::Relaxed);
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
}

impl Log {
    fn open(path: &Path, longest: u64) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), length, longest })
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        if self.length > 0 && self.length + line.len() as u64 >= self.longest {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        journal.record("{}".to_owned());
        let dropped = journal.dropped.clone();
        drop(journal);
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    }
}
