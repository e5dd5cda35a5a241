//! One tree of what was given: the file's tables with the environment laid over them. NOT what a key means.

use std::ffi::OsString;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{self, Place, Problem};

/// A value and where it was given.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub value: Value,
    pub place: Place,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Number(f64),
    Flag(bool),
    List(Vec<Node>),
    Table(Table),
    Date,
}

/// Keys in the order they were given.
pub(super) type Table = Vec<(String, Node)>;

impl Node {
    /// Variables hold text only: `8` and `a,b` must pass for a number and a list there.
    pub fn is_variable(&self) -> bool {
        matches!(self.place, Place::Variable(_))
    }
}

impl Value {
    /// As a person calls it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Whole(_) => "a whole number",
            Self::Number(_) => "a number",
            Self::Flag(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Date => "a date",
        }
    }
}

/// The file's tables, or every place where it is not TOML.
pub(super) fn parse(text: &str) -> Result<Table, Vec<Problem>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(table(text, document.get_ref()));
    }
    let problem_of = |error: toml::de::Error| Problem {
        key: String::new(),
        text: format!("not TOML: {}", error.message().replace('\n', ", ")),
        place: error.span().map_or(Place::Whole, |span| line(text, span.start)),
    };
    let mut problems: Vec<Problem> = errors.into_iter().map(problem_of).collect();
    problem::sort(&mut problems);
    Err(problems)
}

fn table(text: &str, entries: &DeTable<'_>) -> Table {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter().map(|(key, value)| (key.get_ref().to_string(), node(text, key.span().start, value))).collect()
}

fn node(text: &str, at: usize, value: &Spanned<DeValue<'_>>) -> Node {
    let list = |item: &Spanned<DeValue<'_>>| node(text, item.span().start, item);
    let value = match value.get_ref() {
        DeValue::String(inner) => Value::Text(inner.to_string()),
        // An integer beyond i64 is no amount of anything here: it falls through as a number and is refused by name.
        DeValue::Integer(inner) => match i64::from_str_radix(inner.as_str(), inner.radix()) {
            Ok(whole) => Value::Whole(whole),
            Err(_) => Value::Number(f64::INFINITY),
        },
        DeValue::Float(inner) => Value::Number(inner.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(inner) => Value::Flag(*inner),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => Value::List(items.iter().map(list).collect()),
        DeValue::Table(inner) => Value::Table(table(text, inner)),
    };
    Node { value, place: line(text, at) }
}

fn line(text: &str, offset: usize) -> Place {
    let before = text.as_bytes().iter().take(offset);
    Place::Line(1 + before.filter(|&&byte| byte == b'\n').count())
}

const PREFIX: &str = "PACKLIGHT_";

/// Names that variables may speak of though no file does.
#[derive(Debug)]
pub(super) struct Builtin<'a> {
    pub upstreams: &'a [&'a str],
    pub prices: &'a [&'a str],
}

/// Lays `PACKLIGHT_SERVER__LISTEN=…` over the file: two underscores are the dot, names are compared without case and
/// punctuation, so that an upstream `my-llm` is `PACKLIGHT_UPSTREAM__MY_LLM__URL`.
///
/// Upstreams and prices are found by name, the built-in ones too.
pub(super) fn overlay(
    tree: &mut Table,
    variables: &[(OsString, OsString)],
    builtin: &Builtin<'_>,
    problems: &mut Vec<Problem>,
) {
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| !foreign(name)) else { continue };
        let Some(dotted) = name.strip_prefix(PREFIX) else { continue };
        let place = Place::Variable(name.to_owned());
        let Some(value) = value.to_str() else {
            problems.push(Problem { key: String::new(), text: "its value is not UTF-8".to_owned(), place });
            continue;
        };
        let path: Vec<String> = dotted.split("__").map(str::to_ascii_lowercase).collect();
        let node = Node { value: Value::Text(value.to_owned()), place };
        if let Err(problem) = lay(tree, &path, node, builtin) {
            problems.push(problem);
        }
    }
}

/// Not meant for us: variables of the tests, and those a Kubernetes service named `packlight…` puts into every pod.
fn foreign(name: &str) -> bool {
    let service = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT_"].iter().any(|part| name.contains(part));
    name.starts_with("PACKLIGHT_TEST_") || (!name.contains("__") && (service || name.ends_with("_PORT")))
}

fn lay(tree: &mut Table, path: &[String], node: Node, builtin: &Builtin<'_>) -> Result<(), Problem> {
    match path {
        [first, name, keys @ ..] if first == "upstream" && !keys.is_empty() => {
            lay_upstream(tree, name, keys, node, builtin.upstreams)
        }
        [first, name, keys @ ..] if first == "prices" && !keys.is_empty() => {
            lay_price(tree, name, keys, node, builtin.prices)
        }
        _ => {
            lay_plain(tree, path, node);
            Ok(())
        }
    }
}

fn lay_upstream(tree: &mut Table, name: &str, keys: &[String], node: Node, builtin: &[&str]) -> Result<(), Problem> {
    let items = builtin.iter().map(|name| {
        let name = Node { value: Value::Text((*name).to_owned()), place: Place::Whole };
        Node { value: Value::Table(vec![("name".to_owned(), name)]), place: Place::Whole }
    });
    // A list that is no list is reported when it is read.
    let Value::List(items) = entry(tree, "upstream", || Value::List(items.collect())) else { return Ok(()) };
    let mut names = Vec::new();
    for item in items {
        let Value::Table(table) = &mut item.value else { continue };
        let own = table.iter().find_map(|(key, node)| match &node.value {
            Value::Text(text) if key == "name" => Some(text.clone()),
            _ => None,
        });
        let Some(own) = own else { continue };
        if plain(&own) == plain(name) {
            lay_plain(table, keys, node);
            return Ok(());
        }
        names.push(own);
    }
    let text = format!("no upstream has this name, there are {}", names.join(", "));
    Err(Problem { key: format!("upstream.{name}"), text, place: node.place })
}

fn lay_price(tree: &mut Table, name: &str, keys: &[String], node: Node, builtin: &[&str]) -> Result<(), Problem> {
    let Value::Table(table) = entry(tree, "prices", || Value::Table(Vec::new())) else { return Ok(()) };
    if !table.iter().any(|(key, _)| plain(key) == plain(name)) {
        let Some(own) = builtin.iter().find(|own| plain(own) == plain(name)) else {
            // A variable cannot spell the name of a new one: `kimi-k3` and `kimi_k3` would be the same.
            let names: Vec<&str> = table.iter().map(|(key, _)| key.as_str()).chain(builtin.iter().copied()).collect();
            let text = format!("no price has this name, there are {}", names.join(", "));
            return Err(Problem { key: format!("prices.{name}"), text, place: node.place });
        };
        table.push(((*own).to_owned(), Node { value: Value::Table(Vec::new()), place: Place::Whole }));
    }
    let mut path = vec![name.to_owned()];
    path.extend_from_slice(keys);
    lay_plain(table, &path, node);
    Ok(())
}

/// The value of a top-level key, made when it is absent.
fn entry<'a>(tree: &'a mut Table, key: &str, make: impl FnOnce() -> Value) -> &'a mut Value {
    if let Some(index) = tree.iter().position(|(name, _)| name == key) {
        return &mut tree[index].1.value;
    }
    tree.push((key.to_owned(), Node { value: make(), place: Place::Whole }));
    let last = tree.len() - 1;
    &mut tree[last].1.value
}

/// Sets the value at `path`, making tables on the way. What stands in the way and is no table stays: it is reported
/// when it is read.
fn lay_plain(table: &mut Table, path: &[String], node: Node) {
    let Some((first, rest)) = path.split_first() else { return };
    let index = table.iter().position(|(key, _)| plain(key) == plain(first)).unwrap_or_else(|| {
        let empty = Node { value: Value::Table(Vec::new()), place: node.place.clone() };
        table.push((first.clone(), empty));
        table.len() - 1
    });
    let Some((_, slot)) = table.get_mut(index) else { return };
    if rest.is_empty() {
        *slot = node;
    } else if let Value::Table(inner) = &mut slot.value {
        lay_plain(inner, rest, node);
    }
}

/// A name as the name of a variable can spell it: `KIMI_K3` is `kimi-k3`, and `kimi-k3*` too.
fn plain(name: &str) -> String {
    let spelt = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    spelt.collect::<String>().trim_end_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_others_are_left_alone() {
        for name in ["PACKLIGHT_TEST_REDIS", "PACKLIGHT_SERVICE_HOST", "PACKLIGHT_PORT", "PACKLIGHT_PORT_8787_TCP_ADDR"]
        {
            assert!(foreign(name), "{name}");
        }
        assert!(!foreign("PACKLIGHT_SERVER__LISTEN"));
        assert!(!foreign("PACKLIGHT_SEVER"));
    }

    #[test]
    fn every_syntax_error_has_its_line() {
        let problems = parse("a = 1\nb =\n[c\n").unwrap_err();
        let lines: Vec<&Place> = problems.iter().map(|problem| &problem.place).collect();
        assert!(lines.contains(&&Place::Line(2)) && lines.contains(&&Place::Line(3)), "{problems:?}");
    }
}
