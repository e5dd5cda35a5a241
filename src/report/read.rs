//! Reads logs line by line, whatever is in them. A line is never kept longer than it takes to count it. NOT the counting.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::tally::Tally;
use crate::decision::Decision;

/// A longer line is no record of ours: the longest hold a roster of 512 names and a message of 64 KB.
const LINE_BYTES: usize = 4 << 20;

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
}

/// Counts every record of these files into `tally`. `read`: told of bytes as they are read.
pub fn read(paths: &[PathBuf], tally: &mut Tally, read: &mut dyn FnMut(u64)) -> Result<(), ReadError> {
    for path in paths {
        let failed = |error| ReadError::File { path: path.display().to_string(), error };
        let mut file = BufReader::with_capacity(1 << 18, File::open(path).map_err(failed)?);
        lines(path, &mut file, tally, read).map_err(failed)?;
    }
    Ok(())
}

/// Length of these files together; what is no file counts nothing.
pub fn length(paths: &[PathBuf]) -> u64 {
    paths.iter().filter_map(|path| path.metadata().ok()).map(|metadata| metadata.len()).sum()
}

fn lines(path: &Path, file: &mut impl BufRead, tally: &mut Tally, read: &mut dyn FnMut(u64)) -> io::Result<()> {
    let mut line = Vec::new();
    let mut number = 0u64;
    while let Some(bytes) = next(file, &mut line)? {
        read(bytes);
        number += 1;
        if line.iter().all(u8::is_ascii_whitespace) && bytes <= LINE_BYTES as u64 {
            continue;
        }
        // A record has a time: any other JSON would read as an empty one.
        match serde_json::from_slice::<Decision>(&line) {
            Ok(decision) if decision.ts > 0.0 => tally.add(&decision),
            _ => tally.unreadable(format!("{}:{number}", path.display())),
        }
    }
    Ok(())
}

/// Fills `line` with the next line and says how many bytes it took; a line that is too long is passed over and empty.
fn next(file: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<u64>> {
    line.clear();
    let mut bytes = 0u64;
    loop {
        let buffer = match file.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        if buffer.is_empty() {
            return Ok((bytes > 0).then_some(bytes));
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let piece = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
        if line.len() + piece.len() <= LINE_BYTES {
            line.extend_from_slice(piece);
        }
        let used = piece.len() + usize::from(end.is_some());
        bytes += used as u64;
        file.consume(used);
        if end.is_some() {
            if bytes > LINE_BYTES as u64 + 1 {
                line.clear();
            }
            return Ok(Some(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_record_is_counted_and_passed_over() {
        let long = "x".repeat(LINE_BYTES + 10);
        let text =
            format!("{{\"ts\":1}}\n\n{{\"other\":1}}\n\u{0}\n{long}\n{{\"ts\":2,\"arm\":\"narrow\"}}\n{{\"ts\":3");
        let mut tally = Tally::new(None);
        let mut bytes = 0;
        let mut file = BufReader::with_capacity(7, text.as_bytes());
        lines(Path::new("log"), &mut file, &mut tally, &mut |more| bytes += more).expect("read");
        assert_eq!((tally.records, tally.unreadable), (2, 4));
        assert_eq!(tally.first_unreadable.as_deref(), Some("log:3"));
        assert_eq!(bytes, text.len() as u64);
        assert_eq!(tally.span, Some((1.0, 2.0)));
    }
}
