//! The providers behind the data port. NOT a client.

use http::uri::{Authority, Scheme};

use super::narrow::Narrow;
use super::read::{self, Section};
use super::source::Node;

/// `[[upstream]]`.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// Not empty; the label of metrics.
    pub name: String,
    /// Starts with `/`, is more than `/`, has no `/` at its end.
    pub prefix: String,
    pub url: Base,
    /// A narrowed request never declares more.
    pub max_tools: usize,
    /// Asks the provider's own counting endpoint, once per roster.
    pub count_tokens: bool,
    /// `[narrow]` with the upstream's own keys over it.
    pub narrow: Narrow,
}

/// Where requests go: `http` or `https`, without credentials, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    pub scheme: Scheme,
    pub authority: Authority,
    /// Stands in front of the request's own path; empty or `/…` without a `/` at its end.
    pub path: String,
}

/// The built-in upstreams: name, prefix, url, cap on tools.
const BUILTIN: [(&str, &str, &str, usize); 2] = [
    ("kimi", "/kimi", "https://api.moonshot.ai", 128),
    ("gemini", "/gemini", "https://generativelanguage.googleapis.com", 512),
];

/// The cap of an upstream that says nothing: the lowest one known.
const MAX_TOOLS: usize = 128;

pub(super) const BUILTIN_NAMES: [&str; 2] = [BUILTIN[0].0, BUILTIN[1].0];

/// What is served without a file.
pub(super) fn builtin(narrow: &Narrow) -> Vec<Upstream> {
    let upstream = |(name, prefix, url, max_tools): (&str, &str, &str, usize)| {
        let (name, prefix, narrow) = (name.to_owned(), prefix.to_owned(), narrow.clone());
        Some(Upstream { name, prefix, url: Base::parse(url).ok()?, max_tools, count_tokens: false, narrow })
    };
    BUILTIN.into_iter().filter_map(upstream).collect()
}

/// Reads the list; an upstream named like a built-in one starts from it.
pub(super) fn read(sections: Vec<Section<'_>>, narrow: &Narrow) -> Vec<Upstream> {
    let mut upstreams: Vec<Upstream> = Vec::new();
    for section in sections {
        let name_twice = |name: &str| upstreams.iter().any(|other| other.name == name);
        let prefix_of = |prefix: &str| upstreams.iter().find(|other| other.prefix == prefix).map(|o| o.name.clone());
        if let Some(upstream) = read_one(section, narrow, &name_twice, &prefix_of) {
            upstreams.push(upstream);
        }
    }
    upstreams
}

fn read_one(
    mut section: Section<'_>,
    narrow: &Narrow,
    name_twice: &dyn Fn(&str) -> bool,
    prefix_of: &dyn Fn(&str) -> Option<String>,
) -> Option<Upstream> {
    let mut name = String::new();
    section.take("name", &mut name, read::text);
    let known = builtin(narrow).into_iter().find(|upstream| upstream.name == name);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() {
        section.report("name", "must be given, such as \"kimi\"");
    } else if !name.chars().all(plain) {
        section.report("name", format!("`{name}` must be letters, digits, - and _ only: it is a label of metrics"));
    } else if name_twice(&name) {
        section.report("name", format!("`{name}` is the name of an earlier upstream"));
    }
    let mut prefix = known.as_ref().map_or_else(|| format!("/{name}"), |known| known.prefix.clone());
    section.take("prefix", &mut prefix, read_prefix);
    if let Some(other) = prefix_of(&prefix) {
        section.report("prefix", format!("`{prefix}` is the prefix of upstream {other} already"));
    }
    let mut url = known.as_ref().map(|known| known.url.clone());
    section.take("url", &mut url, |node| Base::parse(&read::text(node)?).map(Some));
    if url.is_none() && !section.has("url") {
        section.report("url", "must be given, such as \"https://api.example.com\"");
    }
    let mut max_tools = known.as_ref().map_or(MAX_TOOLS, |known| known.max_tools);
    section.take("max_tools", &mut max_tools, read::count(1, usize::MAX));
    let mut count_tokens = false;
    section.take("count_tokens", &mut count_tokens, read::flag);
    let narrow = Narrow::read(section.section("narrow"), narrow);
    section.finish();
    Some(Upstream { name, prefix, url: url?, max_tools, count_tokens, narrow })
}

impl Base {
    /// Reads `https://host[:port][/path]`. The text of an error never repeats credentials.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wanted = "must be an http or https address, such as https://api.example.com";
        let uri: http::Uri = text.parse().map_err(|_| wanted.to_owned())?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else { return Err(wanted.to_owned()) };
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(format!("{wanted}, not {scheme}"));
        }
        if authority.as_str().contains('@') {
            return Err("must not hold credentials: the agent's own are sent on".to_owned());
        }
        let path = parts.path_and_query.as_ref();
        if path.is_some_and(|path| path.query().is_some()) || text.contains('#') {
            return Err("must end with its path, without ? and #".to_owned());
        }
        let path = path.map_or("", |path| path.path()).trim_end_matches('/').to_owned();
        Ok(Self { scheme, authority, path })
    }
}

impl std::fmt::Display for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.path)
    }
}

fn read_prefix(node: &Node) -> Result<String, String> {
    let prefix = read::text(node)?;
    if !prefix.starts_with('/') {
        return Err(format!("`{prefix}` must start with /"));
    }
    if prefix.trim_end_matches('/').is_empty() {
        return Err("must be more than /: it is what tells upstreams apart".to_owned());
    }
    let path = prefix.trim_end_matches('/');
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/".contains(c);
    if !path.chars().all(plain) || path.contains("//") {
        return Err(format!("`{prefix}` must be plain path segments: letters, digits, - . _ ~"));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_is_there() {
        let names: Vec<String> = builtin(&Narrow::default()).into_iter().map(|upstream| upstream.name).collect();
        assert_eq!(names, BUILTIN_NAMES);
    }

    #[test]
    fn a_base_is_shown_as_it_was_written() {
        for text in ["https://api.moonshot.ai", "http://127.0.0.1:8080/a/b"] {
            assert_eq!(Base::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Base::parse("http://h/").unwrap().path, "");
    }

    #[test]
    fn an_error_never_repeats_a_password() {
        let error = Base::parse("https://me:hunter2@api.example.com").unwrap_err();
        assert_eq!(error, "must not hold credentials: the agent's own are sent on");
    }

    #[test]
    fn refuses_other_addresses() {
        for text in ["", "api.moonshot.ai", "ftp://h", "https://", "http://h/?a=b", "http://h/#x", "/path"] {
            assert!(Base::parse(text).is_err(), "{text}");
        }
    }
}
