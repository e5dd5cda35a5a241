//! The catalogs that requests may refer to: by their names, read again when their files change. A
//! version that was read stays when the next one cannot be. NOT what is in one (`wire::listing`).

use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderMap;

use super::look::{self, Look, Seen};
use super::respond::Trouble;
use super::shutdown::Shutdown;
use crate::config::catalogs::ToolFile;
use crate::metrics::File;
use crate::wire::listing::Listing;

/// The request header that names one.
const HEADER: &str = "x-packlight-catalog";

/// Every catalog, by name.
#[derive(Debug)]
pub struct Catalogs(Vec<Arc<Shelved>>);

/// One that is used, in its last version that could be read.
#[derive(Debug)]
struct Shelved {
    file: ToolFile,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    listing: Arc<Listing>,
    seen: Seen,
}

impl Catalogs {
    pub fn new(files: &[ToolFile]) -> Self {
        let shelved = |file: &ToolFile| {
            let now = Now { listing: Arc::clone(&file.listing), seen: Seen::default() };
            Arc::new(Shelved { file: file.clone(), now: Mutex::new(now) })
        };
        Self(files.iter().map(shelved).collect())
    }

    /// Looks at the files until shutdown.
    pub fn watch(&self, shutdown: &Shutdown) {
        self.0.iter().for_each(|catalog| look::keep_looking(catalog, shutdown));
    }

    /// Their files as they were at the last look.
    pub fn files(&self) -> impl Iterator<Item = File> {
        self.0.iter().map(|catalog| File {
            kind: "catalog",
            name: catalog.file.name.clone(),
            broken: catalog.now().seen.broken(),
        })
    }

    /// The catalog that a request refers to; `None`: it refers to none. An empty name is one that no catalog has: whoever
    /// left it empty has sent no tools either.
    pub fn asked(&self, headers: &HeaderMap) -> Result<Option<Arc<Listing>>, Trouble> {
        let mut values = headers.get_all(HEADER).iter();
        let Some(value) = values.next() else { return Ok(None) };
        let name = value.to_str().map(str::trim).ok().filter(|_| values.next().is_none());
        match name.and_then(|name| self.0.iter().find(|catalog| catalog.file.name == name)) {
            Some(catalog) => Ok(Some(catalog.listing())),
            None => {
                let known = self.0.iter().map(|catalog| catalog.file.name.clone()).collect();
                Err(Trouble::UnknownCatalog { known })
            }
        }
    }
}

impl Shelved {
    fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.now().listing)
    }

    fn now(&self) -> std::sync::MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Look for Shelved {
    fn look(&self) {
        if !self.now().seen.changed(&self.file.path) {
            return;
        }
        let before = self.listing();
        let read = ToolFile::read(&self.file.name, &self.file.path);
        self.now().seen.read(read.is_ok());
        match read {
            Ok(read) if read.listing.digest() == before.digest() => {}
            Ok(read) => {
                read.listing.warm_like(&before);
                let (catalog, tools) = (&self.file.name, read.listing.len());
                self.now().listing = read.listing;
                tracing::info!(%catalog, tools, "the catalog was read again");
            }
            Err(error) => {
                let catalog = &self.file.name;
                tracing::warn!(%catalog, %error, tools = before.len(), "the version before is used on");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(names: &[&str]) -> String {
        let tools: Vec<String> = names.iter().map(|name| format!(r#"{{"name":"{name}"}}"#)).collect();
        format!("[{}]", tools.join(","))
    }

    fn asked(catalogs: &Catalogs, values: &[&'static str]) -> Result<Option<usize>, String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HEADER, value.parse().expect("a value"));
        }
        let asked = catalogs.asked(&headers).map_err(|trouble| trouble.to_string())?;
        Ok(asked.map(|listing| listing.len()))
    }

    #[test]
    fn a_request_names_one_catalog_or_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let read = |name: &str, tools: &[&str]| {
            let path = folder.path().join(name);
            std::fs::write(&path, file(tools)).expect("written");
            ToolFile::read(name, &path).expect("a catalog")
        };
        let catalogs = Catalogs::new(&[read("crm", &["a", "b"]), read("hr", &["c"])]);
        assert_eq!(asked(&catalogs, &[]), Ok(None));
        assert_eq!(asked(&catalogs, &[" crm "]), Ok(Some(2)));
        let unknown = "packlight: x-packlight-catalog names no catalog: there are crm, hr";
        for values in [&["CRM"][..], &["crm,hr"], &["crm", "hr"], &[""], &[" "]] {
            assert_eq!(asked(&catalogs, values), Err(unknown.to_owned()), "{values:?}");
        }
        let none = "packlight: x-packlight-catalog names no catalog: none is configured ([catalogs.NAME])";
        assert_eq!(asked(&Catalogs::new(&[]), &["crm"]), Err(none.to_owned()));
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_broken_one_is_not() {
        let path = tempfile::NamedTempFile::new().expect("a file");
        let write = |text: &str| std::fs::write(path.path(), text).expect("written");
        write(&file(&["a"]));
        let catalogs = Catalogs::new(&[ToolFile::read("crm", path.path()).expect("a catalog")]);
        let look = || {
            catalogs.0.iter().for_each(|catalog| catalog.look());
            let broken = catalogs.files().any(|file| file.broken);
            (asked(&catalogs, &["crm"]), broken)
        };
        write(&file(&["a", "b"]));
        assert_eq!(look(), (Ok(Some(2)), false));
        for broken in ["", "[{}]", "[", "[{\"name\":\"a\"},{\"name\":\"a\"}]"] {
            write(broken);
            assert_eq!(look(), (Ok(Some(2)), true), "{broken}");
            assert_eq!(look(), (Ok(Some(2)), true), "it stays broken: {broken}");
        }
        write(&file(&["a", "b"]));
        assert_eq!(look(), (Ok(Some(2)), false), "as it was before");
        std::fs::remove_file(path.path()).expect("gone");
        assert_eq!(look(), (Ok(Some(2)), true));
        write(&file(&["a"]));
        assert_eq!(look(), (Ok(Some(1)), false));
    }
}
