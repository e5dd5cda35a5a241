//! The o200k vocabulary: bytes -> rank. A static table, sorted by length and bytes; its layout is said in `build.rs`.
//! NOT merging.

use std::sync::LazyLock;

static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.bin"));

const LONGEST: usize = 128;
/// Bytes of a rank.
const RANK: usize = 3;

/// The tokens of one length.
#[derive(Clone, Copy, Default)]
struct Class {
    count: usize,
    /// Where their bytes begin in [`TABLE`], and their ranks.
    keys: usize,
    ranks: usize,
}

static CLASSES: LazyLock<Vec<Class>> = LazyLock::new(|| {
    let counts: Vec<usize> = TABLE.chunks(4).take(LONGEST).map(|count| number(count) as usize).collect();
    let mut keys = LONGEST * 4;
    let mut ranks = keys + counts.iter().zip(1..).map(|(count, length)| count * length).sum::<usize>();
    let mut classes = vec![Class::default()];
    for (count, length) in counts.into_iter().zip(1..) {
        classes.push(Class { count, keys, ranks });
        keys += count * length;
        ranks += count * RANK;
    }
    classes
});

/// The rank of a token; `None`: these bytes are none.
pub fn rank(bytes: &[u8]) -> Option<u32> {
    let class = CLASSES.get(bytes.len())?;
    let keys = TABLE.get(class.keys..class.keys + class.count * bytes.len())?;
    let (mut low, mut high) = (0, class.count);
    while low < high {
        let middle = (low + high) / 2;
        let key = keys.get(middle * bytes.len()..(middle + 1) * bytes.len())?;
        match key.cmp(bytes) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
            std::cmp::Ordering::Equal => {
                let at = class.ranks + middle * RANK;
                return Some(number(TABLE.get(at..at + RANK)?));
            }
        }
    }
    None
}

/// Little-endian, of at most four bytes.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_a_token_and_a_table_of_200_thousand_is_whole() {
        assert!((0..=255u8).all(|byte| rank(&[byte]).is_some()));
        assert_eq!(CLASSES.iter().map(|class| class.count).sum::<usize>(), 199_998);
        assert_eq!(rank(b""), None);
        assert_eq!(rank("لا توجد هذه الكلمة".as_bytes()), None);
        assert_eq!(rank(&[b' '; 129]), None);
    }
}
