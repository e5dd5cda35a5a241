//! Any bytes in any pieces: the frames are the same, and together they are the bytes.

use packlight_fuzz::wire::sse::{Splitter, data, with_data};
use packlight_fuzz::{cut, run};

fn frames(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let (mut splitter, mut frames) = (Splitter::default(), Vec::new());
    for chunk in chunks {
        splitter.feed(chunk);
        frames.extend(std::iter::from_fn(|| splitter.next_frame()));
    }
    (frames, splitter.rest())
}

fn target(bytes: &[u8]) -> bool {
    let (whole, rest) = frames(&[bytes]);
    assert_eq!([whole.concat(), rest.clone()].concat(), bytes);
    assert_eq!(frames(&cut(bytes)), (whole.clone(), rest));
    for frame in &whole {
        if data(frame).is_some() {
            assert_eq!(data(&with_data(frame, "{\n}")).as_deref(), Some(&b"{\n}"[..]));
        }
    }
    whole.len() > 2
}

fn main() {
    run::run("sse", &[("openai", &[".sse"]), ("gemini", &[".sse"]), ("anthropic", &[".sse"])], target);
}
