//! The model's file, format "E5S1": its head is read, its tensors are found and checked, and handed out as numbers.
//!
//! ```text
//! header      magic, version, 7 dimensions, epsilon, block size                        44 bytes
//! tokenizer   5 ids, offsets, scores, pieces, normaliser table
//! directory   per tensor: name, type, count, offset, bytes
//! tensors     f32, or Q4_0: blocks of 32 weights in 18 bytes (f16 scale, 16 bytes of two nibbles)
//! ```
//! All little-endian. NOT what the tensors mean ([`super::forward`]), NOT which file is the right one ([`super`]).
//!
//! The file is read by position and NOT mapped. A map was the first plan; but a mapped file that is cut short by
//! someone (`cp` over it) kills the process by SIGBUS, while a failed read is an error and fails open. A read of one
//! row costs a microsecond, 20 of them a thousandth of an embedding, and no page of the file counts as resident.
//! Nothing in a file is trusted: each count is held against the file's length before memory is asked for.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};

use half::f16;

use super::vocabulary::Vocabulary;

/// Weights in a Q4_0 block.
const BLOCK: usize = 32;
/// Bytes of a Q4_0 block: scale and nibbles.
const BLOCK_BYTES: usize = 2 + BLOCK / 2;

/// Dimensions of the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    pub feed_forward: usize,
    /// Rows of the word table; at least as many as pieces.
    pub rows: usize,
    pub positions: usize,
    pub types: usize,
    pub epsilon: f32,
}

/// What is wrong with a model file.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    #[error("it does not begin with E5S1")]
    Magic,
    #[error("its version is {0}, known is 1")]
    Version(u32),
    #[error("it ends within its {0}")]
    Truncated(&'static str),
    #[error("its {what} is out of range: {found}")]
    Range { what: &'static str, found: i64 },
    #[error("tensor {name} is {problem}")]
    Tensor { name: String, problem: &'static str },
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
}

/// An open model file whose head has been read.
#[derive(Debug)]
pub struct ModelFile {
    pub shape: Shape,
    file: File,
    directory: HashMap<String, Place>,
}

impl ModelFile {
    /// Reads the head, from the file's start.
    ///
    /// # Errors
    /// Truncated, or not of the format.
    pub fn read(file: File) -> Result<(Self, Vocabulary), FormatError> {
        let length = file.metadata()?.len();
        let mut head =
            Head { input: BufReader::with_capacity(1 << 16, Positioned { file: &file, at: 0 }), left: length };
        let shape = read_shape(&mut head)?;
        let vocabulary = read_vocabulary(&mut head, &shape)?;
        let directory = read_directory(&mut head, length)?;
        Ok((Self { shape, file, directory }, vocabulary))
    }

    /// The numbers of a tensor of `count`.
    ///
    /// # Errors
    /// No such tensor, or not of that count, or unreadable.
    pub fn tensor(&self, name: &str, count: usize) -> Result<Vec<f32>, FormatError> {
        let mut buffer = Buffer::default();
        self.append(name, count, &mut buffer)?;
        Ok(buffer.numbers)
    }

    /// Adds the numbers of a tensor of `count` to `buffer.numbers`.
    ///
    /// # Errors
    /// As [`ModelFile::tensor`].
    pub fn append(&self, name: &str, count: usize, buffer: &mut Buffer) -> Result<(), FormatError> {
        let place = self.place(name, count)?;
        let Buffer { bytes, numbers } = buffer;
        bytes.resize(place.bytes, 0);
        read_exact_at(&self.file, bytes, place.offset)?;
        let before = numbers.len();
        numbers.resize(before + count, 0.0);
        let numbers = numbers.get_mut(before..).unwrap_or_default();
        match place.kind {
            Kind::F32 => {
                for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
                    *number = f32::from_le_bytes(*bytes);
                }
            }
            Kind::Q4 => expand(bytes, numbers),
        }
        Ok(())
    }

    /// Keeps the file open for single rows of a Q4 tensor of `rows` x `width`.
    ///
    /// # Errors
    /// No such tensor, or of another kind or size.
    pub fn into_rows(self, name: &str, rows: usize, width: usize) -> Result<Rows, FormatError> {
        let problem = |problem| FormatError::Tensor { name: name.to_owned(), problem };
        let count = rows.checked_mul(width).ok_or_else(|| problem("too large"))?;
        let place = self.place(name, count)?;
        if place.kind != Kind::Q4 || !width.is_multiple_of(BLOCK) {
            return Err(problem("not in rows of 4-bit blocks"));
        }
        Ok(Rows { file: self.file, offset: place.offset, rows, width })
    }

    fn place(&self, name: &str, count: usize) -> Result<Place, FormatError> {
        let problem = |problem| FormatError::Tensor { name: name.to_owned(), problem };
        let place = *self.directory.get(name).ok_or_else(|| problem("missing"))?;
        if place.count != count { Err(problem("of another size than the header says")) } else { Ok(place) }
    }
}

/// Kept while tensors are read one after the other: a megabyte of each that is freed stays with the allocator.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    pub numbers: Vec<f32>,
}

/// A table that stays in the file, 4-bit; a row is read when it is asked for.
#[derive(Debug)]
pub struct Rows {
    file: File,
    offset: u64,
    rows: usize,
    width: usize,
}

impl Rows {
    /// Writes row `row` to `into`, `width` numbers. `bytes` is a buffer.
    ///
    /// # Errors
    /// No such row, or the file has become unreadable.
    pub fn read(&self, row: usize, bytes: &mut Vec<u8>, into: &mut [f32]) -> io::Result<()> {
        if row >= self.rows || into.len() != self.width {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such row"));
        }
        let stride = self.width / BLOCK * BLOCK_BYTES;
        bytes.resize(stride, 0);
        read_exact_at(&self.file, bytes, self.offset + (row * stride) as u64)?;
        expand(bytes, into);
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    F32,
    Q4,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    kind: Kind,
    count: usize,
    offset: u64,
    bytes: usize,
}

fn read_shape(head: &mut Head<impl Read>) -> Result<Shape, FormatError> {
    const WHAT: &str = "header";
    if head.array::<4>(WHAT).map_err(|_| FormatError::Magic)? != *b"E5S1" {
        return Err(FormatError::Magic);
    }
    let version = head.u32(WHAT)?;
    if version != 1 {
        return Err(FormatError::Version(version));
    }
    // The upper bounds are far above any model of this kind; they keep products of them from overflowing.
    let shape = Shape {
        hidden: head.within(WHAT, "hidden size", 1..=8192)?,
        layers: head.within(WHAT, "number of layers", 1..=256)?,
        heads: head.within(WHAT, "number of heads", 1..=256)?,
        feed_forward: head.within(WHAT, "feed-forward size", 1..=65536)?,
        rows: head.within(WHAT, "number of vocabulary rows", 1..=4_000_000)?,
        positions: head.within(WHAT, "number of positions", 3..=65536)?,
        types: head.within(WHAT, "number of types", 1..=16)?,
        epsilon: f32::from_bits(head.u32(WHAT)?),
    };
    if head.within(WHAT, "block size", 1..=i32::MAX)? != BLOCK {
        return Err(FormatError::Range { what: "block size", found: 0 });
    }
    if !shape.hidden.is_multiple_of(shape.heads) {
        return Err(FormatError::Range { what: "number of heads", found: shape.heads as i64 });
    }
    if !(shape.epsilon.is_finite() && shape.epsilon >= 0.0) {
        return Err(FormatError::Range { what: "epsilon", found: 0 });
    }
    Ok(shape)
}

fn read_vocabulary(head: &mut Head<impl Read>, shape: &Shape) -> Result<Vocabulary, FormatError> {
    const WHAT: &str = "tokenizer";
    let most = i32::try_from(shape.rows).unwrap_or(i32::MAX);
    let count = head.within(WHAT, "number of pieces", 1..=most)?;
    let last = most.min(i32::try_from(count).unwrap_or(i32::MAX)) - 1;
    let mut mark = |what| head.within(WHAT, what, 0..=last).map(|id| id as u32);
    let (bos, eos, pad, unknown) = (mark("bos id")?, mark("eos id")?, mark("pad id")?, mark("unknown id")?);
    let size = head.u64(WHAT)?;
    let offsets = head.words(WHAT, count + 1)?;
    let scores: Vec<f32> = head.words(WHAT, count)?.into_iter().map(f32::from_bits).collect();
    if scores.iter().any(|score| !score.is_finite()) {
        return Err(FormatError::Range { what: "piece scores", found: 0 });
    }
    let text = head.bytes(WHAT, size)?;
    let end = offsets.last().copied().unwrap_or_default();
    if !offsets.is_sorted() || u64::from(end) > size {
        return Err(FormatError::Range { what: "piece offsets", found: i64::from(end) });
    }

    let entries = head.within(WHAT, "number of normaliser entries", 0..=0x11_0000)?;
    let _bytes = head.u32(WHAT)?;
    let (mut replaced, mut replacements) = (Vec::new(), Vec::new());
    for _ in 0..entries {
        let from = head.char(WHAT)?;
        let [length] = head.array(WHAT)?;
        let start = replacements.len();
        for _ in 0..length {
            replacements.push(head.char(WHAT)?);
        }
        replaced.push((from, start..replacements.len()));
    }
    replaced.sort_by_key(|(from, _)| *from);
    Ok(Vocabulary { bos, eos, pad, unknown, offsets, scores, text, replaced, replacements })
}

fn read_directory(head: &mut Head<impl Read>, length: u64) -> Result<HashMap<String, Place>, FormatError> {
    const WHAT: &str = "directory";
    let tensors = head.within(WHAT, "number of tensors", 0..=100_000)?;
    let mut directory = HashMap::new();
    for _ in 0..tensors {
        let name_length = u16::from_le_bytes(head.array(WHAT)?);
        let name = String::from_utf8_lossy(&head.bytes(WHAT, u64::from(name_length))?).into_owned();
        let [_type] = head.array(WHAT)?;
        let count = head.u32(WHAT)? as usize;
        let (offset, bytes) = (head.u64(WHAT)?, head.u64(WHAT)?);
        let problem = |problem| FormatError::Tensor { name: name.clone(), problem };
        if offset.checked_add(bytes).is_none_or(|end| end > length) {
            return Err(problem("cut off: the file ends before it does"));
        }
        let bytes = usize::try_from(bytes).map_err(|_| problem("too large"))?;
        let kind = if count.checked_mul(4) == Some(bytes) {
            Kind::F32
        } else if count.is_multiple_of(BLOCK) && count / BLOCK * BLOCK_BYTES == bytes {
            Kind::Q4
        } else {
            return Err(problem("neither f32 nor Q4_0"));
        };
        directory.insert(name, Place { kind, count, offset, bytes });
    }
    Ok(directory)
}

/// Q4_0 to numbers: low nibbles are the first half of a block, high nibbles the second.
fn expand(bytes: &[u8], into: &mut [f32]) {
    for (block, out) in bytes.as_chunks::<BLOCK_BYTES>().0.iter().zip(into.as_chunks_mut::<BLOCK>().0) {
        let [low, high, nibbles @ ..] = block;
        let scale = f16::from_le_bytes([*low, *high]).to_f32();
        let (first, second) = out.split_at_mut(BLOCK / 2);
        for ((byte, first), second) in nibbles.iter().zip(first).zip(second) {
            *first = (f32::from(byte & 0xf) - 8.0) * scale;
            *second = (f32::from(byte >> 4) - 8.0) * scale;
        }
    }
}

/// The head as a stream of numbers that knows how much of the file is left.
struct Head<R> {
    input: R,
    left: u64,
}

impl<R: Read> Head<R> {
    fn fill(&mut self, what: &'static str, bytes: &mut [u8]) -> Result<(), FormatError> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or(FormatError::Truncated(what))?;
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => FormatError::Truncated(what),
            _ => FormatError::Io(error),
        })
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], FormatError> {
        let mut bytes = [0; N];
        self.fill(what, &mut bytes)?;
        Ok(bytes)
    }

    fn bytes(&mut self, what: &'static str, count: u64) -> Result<Vec<u8>, FormatError> {
        let count = usize::try_from(count).ok().filter(|_| count <= self.left).ok_or(FormatError::Truncated(what))?;
        let mut bytes = vec![0; count];
        self.fill(what, &mut bytes)?;
        Ok(bytes)
    }

    fn words(&mut self, what: &'static str, count: usize) -> Result<Vec<u32>, FormatError> {
        let bytes = self.bytes(what, count as u64 * 4)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, FormatError> {
        self.array(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &'static str) -> Result<u64, FormatError> {
        self.array(what).map(u64::from_le_bytes)
    }

    fn char(&mut self, what: &'static str) -> Result<char, FormatError> {
        let point = self.u32(what)?;
        char::from_u32(point).ok_or(FormatError::Range { what: "normaliser code point", found: i64::from(point) })
    }

    fn within(
        &mut self,
        part: &'static str,
        what: &'static str,
        range: std::ops::RangeInclusive<i32>,
    ) -> Result<usize, FormatError> {
        let found = i32::from_le_bytes(self.array(part)?);
        if !range.contains(&found) {
            return Err(FormatError::Range { what, found: i64::from(found) });
        }
        usize::try_from(found).map_err(|_| FormatError::Range { what, found: i64::from(found) })
    }
}

/// A reader that leaves the file's own cursor alone.
struct Positioned<'a> {
    file: &'a File,
    at: u64,
}

impl Read for Positioned<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = read_at(self.file, buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    Positioned { file, at: offset }.read_exact(buffer)
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}
