//! The status page of the admin port: what is saved and missed today, and the last decisions. One document without an
//! asset; what matters is there without JavaScript. NOT a socket: `proxy/admin.rs` asks and sends.

pub mod decisions;
pub mod html;
pub mod today;
