//! From bytes and variables to a [`Config`], or to every problem at once. The only file here that opens files and
//! looks at the environment, and only in [`Config::load`]. NOT what a key means.

use std::ffi::OsString;
use std::path::Path;

use super::catalogs;
use super::embeddings::Embeddings;
use super::narrow::Narrow;
use super::prices;
use super::problem::{self, Place, Problem};
use super::read::{self, Reader, Section};
use super::secret::Secret;
use super::server::Server;
use super::source::{self, Builtin, Node};
use super::{Config, Log, Store, StoreKind, upstream};
use crate::store::Redis;

impl Config {
    /// Reads the file, if there is one, and the process's environment.
    pub fn load(file: Option<&Path>) -> Result<Self, Vec<Problem>> {
        let variables: Vec<_> = std::env::vars_os().collect();
        let Some(path) = file else { return Self::parse("", Path::new(""), &variables) };
        let text = std::fs::read(path)
            .map_err(|error| error.to_string())
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()));
        match text {
            Ok(text) => Self::parse(&text, path.parent().unwrap_or(Path::new("")), &variables),
            Err(error) => {
                let text = format!("cannot read {}: {error}", path.display());
                Err(vec![Problem { key: String::new(), text, place: Place::Whole }])
            }
        }
    }

    /// `folder`: where relative paths of the file start. `variables`: the environment, ours and others' alike.
    /// Errors are sorted: lines of the file, then variables by name.
    pub fn parse(text: &str, folder: &Path, variables: &[(OsString, OsString)]) -> Result<Self, Vec<Problem>> {
        let mut tree = source::parse(text)?;
        let builtin = Builtin { upstreams: &upstream::BUILTIN_NAMES, prices: &prices::builtin_names() };
        let mut problems = Vec::new();
        source::overlay(&mut tree, variables, &builtin, &mut problems);

        let reader = Reader::new(folder);
        let mut root = reader.root(&tree);
        let server = Server::read(root.section("server"));
        let mut narrow = Narrow::read(root.section("narrow"), &Narrow::default());
        let mut upstreams = match root.sections("upstream", "name") {
            Some(sections) => upstream::read(sections, &narrow),
            None => upstream::builtin(&narrow),
        };
        let embeddings = Embeddings::read(root.section("embeddings"), variables);
        narrow.settle(embeddings.provider);
        upstreams.iter_mut().for_each(|upstream| upstream.narrow.settle(embeddings.provider));
        let store = Store::read(root.section("store"));
        let log = Log::read(root.section("log"));
        let prices = prices::read(root.named("prices"));
        let catalogs = catalogs::read(root.named("catalogs"));
        root.finish();

        problems.extend(reader.into_problems());
        if problems.is_empty() {
            return Ok(Self { server, upstreams, narrow, embeddings, store, log, prices, catalogs });
        }
        problem::sort(&mut problems);
        Err(problems)
    }
}

impl Store {
    fn read(mut section: Section<'_>) -> Self {
        let mut store = Self::default();
        section.take(
            "kind",
            &mut store.kind,
            read::one_of(&[("memory", StoreKind::Memory), ("redis", StoreKind::Redis)]),
        );
        section.take("url", &mut store.url, redis);
        section.take("prefix", &mut store.prefix, |node| match read::text(node)? {
            empty if empty.is_empty() => Err("must not be empty: others use the same Redis".to_owned()),
            prefix => Ok(prefix),
        });
        section.finish();
        store
    }
}

impl Log {
    fn read(mut section: Section<'_>) -> Self {
        let mut log = Self::default();
        section.take_path("decisions", &mut log.decisions);
        if let Some(path) = log.decisions.as_deref().filter(|path| path.is_dir()) {
            section.report("decisions", format!("{} is a folder: name a file in it", path.display()));
        }
        section.take("text", &mut log.text, read::flag);
        section.take("vectors", &mut log.vectors, read::flag);
        section.finish();
        log
    }
}

/// The address may hold a password: no error repeats it.
fn redis(node: &Node) -> Result<Secret, String> {
    let url = read::text(node)?;
    let known = ["redis://", "unix://", "redis+unix://"].iter().any(|scheme| url.starts_with(scheme));
    match (known, url.starts_with("rediss://")) {
        (true, _) => match Redis::new(&url, "") {
            Ok(_) => Ok(Secret::new(url)),
            Err(bad) => Err(bad.to_string()),
        },
        (_, true) => Err("TLS to Redis is not built in, use redis:// to a local proxy such as stunnel".to_owned()),
        _ => Err("must start with redis:// or unix://".to_owned()),
    }
}
