//! Ids become a vector.

/// Buffers of one forward pass, kept between texts.
#[derive(Debug, Default)]
pub struct Scratch {}
