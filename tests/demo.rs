//! `packlight demo` shows what is true, and says so with its exit code.

use std::net::{Ipv4Addr, SocketAddr};

use packlight::demo::page::{Page, Paint};
use packlight::demo::{self, Sidecar, provider};

/// The agent wired straight to the model, no sidecar: nothing is narrowed, so nothing may be claimed.
#[tokio::test]
async fn without_a_sidecar_nothing_is_claimed() {
    let provider = provider::start().await.expect("a free port");
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let mut out = Vec::new();
    let mut page = Page::new(&mut out, Paint::Plain);
    let held = demo::run(Sidecar { data: provider.addr, admin: nowhere }, &provider, &mut page).await;
    let text = String::from_utf8(out).expect("text");
    assert!(!held.expect("the model answers"), "{text}");
    assert!(text.contains("FAILED English: the model was sent no fewer tokens"), "{text}");
    assert!(text.contains("44 -> 44"), "{text}");
    assert!(!text.contains("all went as claimed"), "{text}");
}
