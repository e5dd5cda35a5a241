//! What an agent sent, ready to be read more than once: its bytes as they came, decoded, and with
//! the tools of the catalog that it refers to. NOT what becomes of it.
//!
//! A request that refers to a catalog has no tools of its own to fail open with, so whatever ends
//! in "the agent's own" sends it with the whole catalog. A catalog that is more than the provider
//! takes is cut to what fits (`turn::whole`): some tools are better than an error.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use bytestring::ByteString;
use http::HeaderMap;

use super::coding::{self, Coding};
use super::head::Head;
use super::readings::Readings;
use crate::wire::lent::{LendError, Lent};
use crate::wire::listing::Listing;
use crate::wire::view::{ChatView, ToolKind};
use crate::wire::{Format, WireError};

/// A chat request as it was sent. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sent {
    pub format: Format,
    /// Below the upstream's prefix, with query.
    pub path: String,
    raw: Bytes,
    text: Text,
    readings: Readings,
    /// The most tools that the provider takes.
    most: usize,
    /// Those of the view that go when all shall go, where that are not all.
    fitting: OnceLock<Arc<[usize]>>,
}

#[derive(Debug, Clone)]
enum Text {
    /// Decoded, and looked through once: the text is asked for many times.
    Own(ByteString),
    /// Decoded, and no text.
    Bytes(Bytes),
    Lent(Arc<Lent>),
}

impl Text {
    fn own(body: Bytes) -> Self {
        ByteString::try_from(body.clone()).map_or(Self::Bytes(body), Self::Own)
    }
}

/// Why a request cannot be read.
#[derive(Debug)]
pub enum Unread {
    /// A content encoding that is not known, or is not what it says.
    Encoding,
    /// It refers to a catalog and cannot be given its tools.
    NoRoom(LendError),
}

/// A chat request before it is read.
pub struct Arrived<'a> {
    pub format: Format,
    pub path: &'a str,
    pub headers: &'a HeaderMap,
    /// The body as it came.
    pub raw: &'a Bytes,
    /// The catalog that it refers to.
    pub catalog: Option<&'a Arc<Listing>>,
    pub readings: &'a Readings,
}

impl Arrived<'_> {
    /// Decodes it. `limit`: bytes it may decode to; `most`: tools that the provider takes.
    pub async fn read(&self, limit: usize, most: usize) -> Result<Sent, Unread> {
        let coding = Coding::of(self.headers);
        let known = (coding != Coding::Unknown).then_some(coding).ok_or(Unread::Encoding)?;
        let decoded = coding::decoded(self.raw, known, limit).await.ok_or(Unread::Encoding)?;
        let text = match self.catalog {
            None => Text::own(decoded),
            Some(catalog) => {
                let body = std::str::from_utf8(&decoded).map_err(|_| Unread::NoRoom(LendError::Body))?;
                let lent = Lent::new(self.format, body, Arc::clone(catalog)).map_err(Unread::NoRoom)?;
                Text::Lent(Arc::new(lent))
            }
        };
        let (path, raw, fitting) = (self.path.to_owned(), self.raw.clone(), OnceLock::new());
        Ok(Sent { format: self.format, path, raw, text, readings: self.readings.clone(), most, fitting })
    }
}

impl Sent {
    /// One that refers to no catalog and is not encoded.
    pub fn plain(format: Format, path: &str, body: Bytes) -> Self {
        let (raw, text) = (body.clone(), Text::own(body));
        let (path, readings, fitting) = (path.to_owned(), Readings::default(), OnceLock::new());
        Self { format, path, raw, text, readings, most: usize::MAX, fitting }
    }

    /// Reads it, with the tools of its catalog.
    pub fn view(&self) -> Result<ChatView<'_>, WireError> {
        match &self.text {
            Text::Own(body) => self.readings.view(self.format, body, &self.path),
            Text::Bytes(body) => self.format.view(body, &self.path),
            Text::Lent(lent) => lent.view(&self.path),
        }
    }

    /// The text that the view is of. Of one that refers to a catalog it is not what may be sent.
    pub fn text(&self) -> &str {
        match &self.text {
            Text::Own(body) => body,
            Text::Bytes(_) => "",
            Text::Lent(lent) => lent.text(),
        }
    }

    /// Bytes that it keeps in memory.
    pub fn len(&self) -> usize {
        match &self.text {
            Text::Own(body) => body.len(),
            Text::Bytes(body) => body.len(),
            Text::Lent(lent) => lent.text().len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The catalog that it refers to.
    pub fn catalog(&self) -> Option<&Arc<Listing>> {
        match &self.text {
            Text::Own(_) | Text::Bytes(_) => None,
            Text::Lent(lent) => Some(lent.listing()),
        }
    }

    /// Notes which tools go when all shall go: `None`: all, see `turn::whole`.
    pub fn fit(&self, fitting: Option<Vec<usize>>) -> Option<Arc<[usize]>> {
        let fitting: Arc<[usize]> = fitting?.into();
        Some(Arc::clone(self.fitting.get_or_init(|| fitting)))
    }

    /// Every tool that is sent in full, in order. `view`: of this.
    pub fn whole<'a>(&'a self, view: &ChatView<'_>) -> impl Iterator<Item = usize> + use<'a> {
        let blocked = view.tools.iter().filter(|tool| tool.kind != ToolKind::Placed).count();
        (0..blocked).filter(|at| self.fitting.get().is_none_or(|fitting| fitting.binary_search(at).is_ok()))
    }

    /// What is sent in full, and its head: the agent's own bytes; of one that refers to a catalog, with its tools.
    pub fn own(&self, head: &Head) -> (Head, Bytes) {
        match &self.text {
            Text::Own(_) | Text::Bytes(_) => (head.clone(), self.raw.clone()),
            Text::Lent(lent) => {
                let body = Bytes::from(self.with_tools(lent, |tools| lent.filled(tools)));
                (head.for_body(body.len()), body)
            }
        }
    }

    /// The value of `tools` of what is sent in full. `view`: of this.
    pub fn tools(&self, view: &ChatView<'_>) -> String {
        let place = &view.layout.tools;
        match &self.text {
            Text::Own(_) | Text::Bytes(_) => self.text().get(place.clone()).unwrap_or_default().to_owned(),
            Text::Lent(lent) => self.with_tools(lent, |tools| lent.filled_tools(place, tools)),
        }
    }

    fn with_tools(&self, lent: &Lent, written: impl FnOnce(&mut dyn Iterator<Item = &str>) -> String) -> String {
        let Ok(view) = lent.view(&self.path) else {
            // It is not what its format says: how many of its own it has is all that is known.
            let room = self.most.saturating_sub(lent.own());
            return written(&mut lent.listing().form(self.format).tools.iter().take(room).map(|tool| &*tool.text));
        };
        let of_catalog = view.layout.lent.clone().unwrap_or_default();
        let goes = self.whole(&view).filter(|at| of_catalog.contains(at));
        written(&mut goes.filter_map(|at| view.tools.get(at)).map(|tool| &*tool.text))
    }
}
