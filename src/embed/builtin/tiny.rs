//! A model file of 6 KB for tests: the whole format, one layer, eleven pieces. NOT in the product.

use std::io::{Seek, Write};

use half::f16;

/// Pieces and their scores; `[0]` to `[3]` are bos, pad, eos, unknown.
pub const PIECES: [(&str, f32); 12] = [
    ("<s>", 0.0),
    ("<pad>", 0.0),
    ("</s>", 0.0),
    ("<unk>", 0.0),
    ("\u{2581}", -3.0),
    ("\u{2581}que", -4.0),
    ("ry", -4.0),
    (":", -2.0),
    ("a", -2.0),
    ("b", -2.0),
    ("ab", -3.5),
    ("é", -5.0),
];

const HIDDEN: usize = 32;
const WIDE: usize = 64;
const POSITIONS: usize = 16;

/// The bytes of the file.
pub fn bytes() -> Vec<u8> {
    let mut out = b"E5S1".to_vec();
    let head = [1, HIDDEN as i32, 1, 4, WIDE as i32, PIECES.len() as i32 + 1, POSITIONS as i32, 2];
    out.extend(head.iter().flat_map(|n| n.to_le_bytes()));
    out.extend(1e-12f32.to_le_bytes());
    out.extend(32i32.to_le_bytes());

    let text: String = PIECES.iter().map(|(piece, _)| *piece).collect();
    out.extend([PIECES.len() as i32, 0, 2, 1, 3].iter().flat_map(|n| n.to_le_bytes()));
    out.extend((text.len() as u64).to_le_bytes());
    let mut offset = 0;
    out.extend(0u32.to_le_bytes());
    for (piece, _) in PIECES {
        offset += piece.len() as u32;
        out.extend(offset.to_le_bytes());
    }
    out.extend(PIECES.iter().flat_map(|(_, score)| score.to_le_bytes()));
    out.extend(text.bytes());
    // A tab is a space, Ⓐ is "ab", a zero-width space is nothing.
    let table: [(char, &[char]); 3] = [('\t', &[' ']), ('\u{200b}', &[]), ('Ⓐ', &['a', 'b'])];
    let entries: Vec<u8> = table
        .iter()
        .flat_map(|(from, to)| {
            let mut entry = (*from as u32).to_le_bytes().to_vec();
            entry.push(to.len() as u8);
            entry.extend(to.iter().flat_map(|point| (*point as u32).to_le_bytes()));
            entry
        })
        .collect();
    out.extend((table.len() as i32).to_le_bytes());
    out.extend((entries.len() as u32).to_le_bytes());
    out.extend(entries);

    let tensors = tensors();
    out.extend((tensors.len() as i32).to_le_bytes());
    let mut offset = out.len() + tensors.iter().map(|(name, _, _)| 2 + name.len() + 21).sum::<usize>();
    for (name, count, data) in &tensors {
        out.extend((name.len() as u16).to_le_bytes());
        out.extend(name.bytes());
        out.push(u8::from(data.len() != count * 4));
        out.extend((*count as u32).to_le_bytes());
        out.extend((offset as u64).to_le_bytes());
        out.extend((data.len() as u64).to_le_bytes());
        offset += data.len();
    }
    out.extend(tensors.into_iter().flat_map(|(_, _, data)| data));
    out
}

/// A file of these bytes that is gone with its handle.
pub fn file(bytes: &[u8]) -> std::fs::File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

fn tensors() -> Vec<(String, usize, Vec<u8>)> {
    let plain = |name: &str, count: usize, value: f32| {
        let data = (0..count).flat_map(|at| (value + (at % 7) as f32 * 0.01).to_le_bytes()).collect();
        (name.to_owned(), count, data)
    };
    let packed = |name: &str, count: usize| {
        let block = |at: usize| {
            let scale = f16::from_f32(0.02).to_le_bytes();
            scale.into_iter().chain((0..16).map(move |byte| (at * 31 + byte * 17) as u8))
        };
        (name.to_owned(), count, (0..count / 32).flat_map(block).collect())
    };
    let mut all = vec![
        packed("emb.word", (PIECES.len() + 1) * HIDDEN),
        plain("emb.pos", POSITIONS * HIDDEN, 0.1),
        plain("emb.type", 2 * HIDDEN, 0.0),
        plain("emb.ln.w", HIDDEN, 1.0),
        plain("emb.ln.b", HIDDEN, 0.0),
    ];
    for (part, outputs, inputs) in [
        ("q", HIDDEN, HIDDEN),
        ("k", HIDDEN, HIDDEN),
        ("v", HIDDEN, HIDDEN),
        ("ao", HIDDEN, HIDDEN),
        ("fi", WIDE, HIDDEN),
        ("fo", HIDDEN, WIDE),
    ] {
        all.push(packed(&format!("l0.{part}.w"), outputs * inputs));
        all.push(plain(&format!("l0.{part}.b"), outputs, 0.0));
    }
    for part in ["aln", "oln"] {
        all.push(plain(&format!("l0.{part}.w"), HIDDEN, 1.0));
        all.push(plain(&format!("l0.{part}.b"), HIDDEN, 0.0));
    }
    all
}
