//! Puts a response on a raw socket, with whatever shall go wrong on the way.
//! NOT what it says. No HTTP library: one would not misbehave when asked to.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::reply::Faults;

/// A response in pieces; each becomes one write and one HTTP chunk.
#[derive(Debug, Clone, Default)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub pieces: Vec<Vec<u8>>,
    /// Chunked; else with a length.
    pub chunked: bool,
    pub faults: Faults,
}

/// Opened by a test to let stalled replies go on.
#[derive(Debug, Default)]
pub struct Gate {
    open: Mutex<bool>,
    bell: Condvar,
}

impl Gate {
    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.bell.notify_all();
    }

    pub fn close(&self) {
        *self.open.lock().unwrap() = false;
    }

    /// Waits until it is open; `false` when `peer` has gone before that.
    pub fn pass(&self, peer: &TcpStream) -> bool {
        let mut open = self.open.lock().unwrap();
        while !*open {
            if gone(peer) {
                return false;
            }
            open = self.bell.wait_timeout(open, Duration::from_millis(20)).unwrap().0;
        }
        true
    }
}

/// How a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// Whole: the connection may serve on.
    Whole,
    /// Broken off as scripted.
    Broken,
    /// The client left before the end.
    HungUp,
}

pub fn send(stream: &mut TcpStream, response: &Response, gate: &Gate) -> Sent {
    match write(stream, response, gate) {
        Ok(sent) => sent,
        Err(_) => Sent::HungUp,
    }
}

fn write(stream: &mut TcpStream, response: &Response, gate: &Gate) -> io::Result<Sent> {
    let faults = &response.faults;
    let pieces = recut(&response.pieces, faults);
    let length: usize = pieces.iter().map(Vec::len).sum();
    let chunked = response.chunked || !faults.trailers.is_empty();
    let mut head = format!("HTTP/1.1 {} {}\r\n", response.status, reason(response.status));
    for (name, value) in &response.headers {
        head += &format!("{name}: {value}\r\n");
    }
    if faults.gzip {
        head += "content-encoding: gzip\r\n";
    }
    if chunked {
        head += "transfer-encoding: chunked\r\n";
    } else if response.status != 204 && response.status != 304 {
        head += &format!("content-length: {length}\r\n");
    }
    stream.write_all((head + "\r\n").as_bytes())?;

    let mut at = 0;
    for piece in &pieces {
        if faults.stall == Some(at) && !gate.pass(stream) {
            return Ok(Sent::HungUp);
        }
        if faults.cut == Some(at) {
            stream.shutdown(std::net::Shutdown::Both)?;
            return Ok(Sent::Broken);
        }
        if faults.reset == Some(at) {
            reset(stream);
            return Ok(Sent::Broken);
        }
        if chunked {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            stream.write_all(&chunk)?;
        } else {
            stream.write_all(piece)?;
        }
        at += piece.len();
        if let Some(pause) = faults.pause {
            std::thread::sleep(pause);
        }
        if gone(stream) {
            return Ok(Sent::HungUp);
        }
    }
    if faults.stall.is_some_and(|n| n >= at) && !gate.pass(stream) {
        return Ok(Sent::HungUp);
    }
    if faults.cut.is_some_and(|n| n >= at) {
        stream.shutdown(std::net::Shutdown::Both)?;
        return Ok(Sent::Broken);
    }
    if chunked {
        let mut end = String::from("0\r\n");
        for (name, value) in &faults.trailers {
            end += &format!("{name}: {value}\r\n");
        }
        stream.write_all((end + "\r\n").as_bytes())?;
    }
    Ok(Sent::Whole)
}

/// The same bytes, cut as the faults want them and wherever one of them strikes.
fn recut(pieces: &[Vec<u8>], faults: &Faults) -> Vec<Vec<u8>> {
    let mut pieces = pieces.to_vec();
    if faults.gzip {
        pieces = vec![gzip(&pieces.concat())];
    }
    if let Some(size) = faults.every {
        pieces = pieces.concat().chunks(size.max(1)).map(<[u8]>::to_vec).collect();
    }
    for place in [faults.stall, faults.cut, faults.reset].into_iter().flatten() {
        let mut start = 0;
        if let Some(i) = pieces.iter().position(|p| {
            start += p.len();
            start > place
        }) {
            let inside = place - (start - pieces[i].len());
            if inside > 0 {
                let rest = pieces[i].split_off(inside);
                pieces.insert(i + 1, rest);
            }
        }
    }
    pieces.retain(|p| !p.is_empty());
    pieces
}

/// Has the other side closed? Bytes that wait to be read do not count.
pub fn gone(stream: &TcpStream) -> bool {
    let _ = stream.set_nonblocking(true);
    let peeked = stream.peek(&mut [0]);
    let _ = stream.set_nonblocking(false);
    match peeked {
        Ok(read) => read == 0,
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    }
}

/// Ends with RST instead of FIN.
fn reset(stream: &TcpStream) {
    let Ok(copy) = stream.try_clone() else { return };
    let _ = tokio::net::TcpSocket::from_std_stream(copy).set_zero_linger();
}

/// A gzip file of stored blocks: valid for every decoder, and needs no library.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks: Vec<&[u8]> = bytes.chunks(65535).collect();
    if blocks.is_empty() {
        blocks.push(&[]);
    }
    for (i, block) in blocks.iter().enumerate() {
        let length = u16::try_from(block.len()).unwrap();
        out.push(u8::from(i + 1 == blocks.len()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend_from_slice(block);
    }
    let crc = !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |c, _| if c & 1 == 1 { (c >> 1) ^ 0xedb8_8320 } else { c >> 1 })
    });
    out.extend(crc.to_le_bytes());
    out.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
    out
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Scripted",
    }
}
