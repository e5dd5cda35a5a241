//! A progress bar for anything over a second. NOT what takes so long.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work this long is worth a bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// A progress bar that shows itself only when the work takes long, and only on a terminal.
pub struct Bar {
    bar: ProgressBar,
    since: Instant,
}

impl Bar {
    /// `length` 0: it is not known.
    pub fn new(length: usize, what: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        let bar = ProgressBar::with_draw_target(Some(length as u64), ProgressDrawTarget::hidden());
        let shape = if length == 0 { "{spinner} {msg} {elapsed}" } else { "{bar:40} {pos}/{len} {msg} {eta}" };
        if let Ok(style) = ProgressStyle::with_template(shape) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self { bar, since: Instant::now() }
    }

    pub fn advance(&self, by: usize) {
        if self.bar.is_hidden() && self.since.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(by as u64);
        self.bar.tick();
    }

    /// Says what it is at now.
    pub fn say(&self, what: String) {
        self.bar.set_message(what);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
