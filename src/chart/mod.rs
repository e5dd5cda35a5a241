//! Figures for people: numbers as text, bars and curves as HTML and inline SVG, and the page around them. One file, no
//! asset, light and dark, narrow and wide. NOT what is measured: `report`, `replay` and the status page say that.
//!
//! Nothing here is trusted: every name goes through [`html::Text`], and a page carries its own Content-Security-Policy.

pub mod bars;
pub mod clock;
pub mod curve;
pub mod html;
pub mod number;
