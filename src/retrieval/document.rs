//! A tool as retrieval reads it, and the texts that become its vector. NOT
//! provider schemas: a schema is only looked at for its top-level parameters.
//!
//! A tool has one vector, the sum of three: of its name, of its description, of everything it says. Over six public
//! sets in fifteen languages that finds all needed tools among the top 12 in 82.4 % of cases, where one text of name
//! and description finds 73.9 %: thin descriptions are carried by the name, rich ones by their own vector.
//!
//! Parameters that half the roster shares (`page`, `language`, ids) say nothing of a tool, and in their text they drown
//! what does. So the third part counts by how much of it is the tool's own: with w that share and P' the roster's mean,
//! N + D + P' + w (P - P'). All needed tools within the top 12 (with the lexical voice), metatool, ha-intents in
//! English and in 20 other languages, xsid-valid in English and in four others, and a REST roster of 69 tools written
//! for this (68 requests in 7 languages, parameters `page`, `language`, `region`, ids):
//!
//! | third part | metatool | ha en | ha others | xsid en | xsid others | REST | REST @1 |
//! |---|---|---|---|---|---|---|---|
//! | none: N + D | 81.2 | 82.1 | 60.2 | 98.3 | 90.8 | 70.6 | 33.8 |
//! | N + D + P | 81.4 | 83.2 | 62.3 | 97.9 | 92.4 | 70.6 | 29.4 |
//! | w by common parameters, mean kept | 81.4 | 83.2 | 62.5 | 97.9 | 93.3 | 75.0 | 36.8 |
//! | the same squared | 81.4 | 82.4 | 61.6 | 97.9 | 93.4 | 75.0 | 35.3 |
//! | w by the roster's variance of P against N and D | 81.5 | 82.4 | 61.9 | 97.9 | 92.9 | 70.6 | 33.8 |
//! | w by the tool's distance from the mean P | 81.5 | 82.4 | 60.9 | 97.9 | 93.1 | 73.5 | 32.4 |
//!
//! Without the mean, w moves a tool as a whole and all figures fall apart (ha others 15). "Common" is a tenth of the
//! roster and at least three tools; a fifth and three tenths do less on xsid and nothing on the rest.
//!
//! Keywords are a voice of their own, K: the mean of the vectors of their runs of one script, which keeps languages that
//! are listed one after another apart. Words of a user's own kind are nearer to any message than a description is, so
//! what counts is how K stands to the mean of those that have one: N + D + P + 1.5 (K - K'). All needed tools within the
//! top 12 and, behind the stroke, found with the five that follow; own cases (615 in five languages), own dialogues (65)
//! and four connectors (135, keywords in English only); last, single-tool own cases when only half of the tools have
//! keywords, for tools with them and without, by vectors alone (with none: 81.3 and 83.7):
//!
//! | keywords | own | dialogues | connectors, @1 | half: with, without |
//! |---|---|---|---|---|
//! | in the description's text | 84.2 / 90.9 | 76.9 / 87.7 | 96.3, 45.2 | 82.0, 79.3 |
//! | their own vector, K | 87.8 / 93.0 | 89.2 / 96.9 | 96.3, 54.1 | 93.8, 45.0 |
//! | 1.5 K | 88.0 / 93.0 | 92.3 / 96.9 | 96.3, 54.1 | 95.7, 27.7 |
//! | 2 K | 88.5 / 93.3 | 92.3 / 96.9 | 96.3, 57.0 | 95.7, 18.0 |
//! | K - K' | as K | as K | as K | 84.3, 82.3 |
//! | **1.5 (K - K')** | as 1.5 K | as 1.5 K | as 1.5 K | 86.6, 81.3 |

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use super::passages;

/// A tool as retrieval reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Document {
    pub name: String,
    /// The tool's description, or the catalog's `search_text` in its place.
    pub description: String,
    pub keywords: Vec<String>,
    pub category: String,
    /// Top-level parameters.
    pub parameters: Vec<Parameter>,
}

impl Document {
    /// Bytes in memory, roughly.
    pub fn weight(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(|text| 40 + text.len()).sum::<usize>();
        let parameters = self.parameters.iter();
        let parameters = parameters.map(|p| 100 + p.name.len() + p.description.len() + texts(&p.values));
        200 + self.name.len() + self.description.len() + texts(&self.keywords) + parameters.sum::<usize>()
    }
}

/// A top-level parameter of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Parameter {
    pub name: String,
    pub description: String,
    /// Enum values.
    pub values: Vec<String>,
}

/// The texts whose unit vectors make the tool's one row ([`super::index`]): its name, its description, all it says. In
/// that order; texts may be equal. Beside them stand [`runs`].
pub fn texts(document: &Document) -> Vec<String> {
    let name = words(&document.name);
    let extra = extra(document);
    let said = join(document.description.trim(), &extra);
    let mut all = join(&format!("{name}."), &said);
    for parameter in &document.parameters {
        // Enum values are left out: with them 76.8 % where names and descriptions alone reach 79.4 %.
        all = join(&all, &format!("{}: {}", parameter.name, parameter.description));
    }
    let is_silent = document.description.trim().is_empty();
    let said = match (is_silent, extra.is_empty()) {
        // Keywords speak for themselves.
        _ if !document.keywords.is_empty() && !is_silent => document.description.trim().to_owned(),
        _ if !document.keywords.is_empty() => name.clone(),
        (true, true) => name.clone(),
        (true, false) => join(&format!("{name}."), &extra),
        (false, _) => said,
    };
    [name, said, all].into_iter().map(|text| head(text, LONGEST)).collect()
}

/// The keywords in runs of one script, each a text; none: it has no keywords.
pub fn runs(document: &Document) -> Vec<String> {
    let mut runs: Vec<(u32, String)> = Vec::new();
    for keyword in document.keywords.iter().map(|keyword| keyword.trim()).filter(|keyword| !keyword.is_empty()) {
        let script = keyword.chars().map(script).max().unwrap_or_default();
        match runs.last_mut() {
            Some((own, run)) if *own == script => *run = format!("{run}, {keyword}"),
            _ => runs.push((script, keyword.to_owned())),
        }
    }
    runs.into_iter().take(MOST_RUNS).map(|(_, run)| head(run, LONGEST)).collect()
}

/// How much of what each tool says in all is its own and not parameters that much of the roster shares; 0 to 1, in the
/// order of the roster.
pub fn owned(documents: &[Document]) -> Vec<f32> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    for document in documents {
        let names: HashSet<&str> = document.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        names.into_iter().for_each(|name| *known.entry(name).or_default() += 1);
    }
    let common = (documents.len() as f32 * COMMON).max(COMMON_LEAST);
    let length = |parameter: &Parameter| (parameter.name.len() + parameter.description.len() + 3) as f32;
    let share = |document: &Document| {
        let own = (document.name.len() + document.description.len()).max(1) as f32;
        let all: f32 = own + document.parameters.iter().map(length).sum::<f32>();
        let shared =
            document.parameters.iter().filter(|p| known.get(p.name.as_str()).is_some_and(|n| *n as f32 >= common));
        1.0 - shared.map(length).sum::<f32>() / all
    };
    documents.iter().map(share).collect()
}

/// Identity of a tool's row: what it is made of, by whom. Hex.
pub fn key(document: &Document, model: &str) -> String {
    let mut hash = Sha256::new();
    feed(&mut hash, RECIPE);
    feed(&mut hash, model);
    for text in texts(document).iter().chain(&runs(document)) {
        feed(&mut hash, text);
    }
    hex::encode(hash.finalize())
}

/// Identity of a roster's matrix: its rows in order. Hex.
pub fn corpus_hash(documents: &[Document], model: &str) -> String {
    let mut hash = Sha256::new();
    for document in documents {
        feed(&mut hash, &key(document, model));
    }
    hex::encode(hash.finalize())
}

/// The top-level parameters of a JSON schema. Whatever it does not understand it leaves out.
pub fn parameters(schema: &str) -> Vec<Parameter> {
    let Ok(schema) = serde_json::from_str::<serde_json::Value>(schema) else { return Vec::new() };
    let Some(properties) = schema.get("properties").and_then(|p| p.as_object()) else { return Vec::new() };
    properties
        .iter()
        .map(|(name, property)| Parameter {
            name: name.clone(),
            description: property.get("description").and_then(|d| d.as_str()).unwrap_or_default().to_owned(),
            values: property
                .get("enum")
                .and_then(|e| e.as_array())
                .map(|values| values.iter().filter_map(|v| v.as_str()).map(str::to_owned).collect())
                .unwrap_or_default(),
        })
        .collect()
}

/// An identifier as words: `_ - . / :` and the humps of camelCase become spaces.
pub fn words(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    let mut chars = name.chars().peekable();
    let mut previous = ' ';
    while let Some(c) = chars.next() {
        let breaks = matches!(c, '_' | '-' | '.' | '/' | ':') || c.is_whitespace();
        let hump = c.is_uppercase()
            && (previous.is_lowercase()
                || previous.is_numeric()
                || (previous.is_uppercase() && chars.peek().is_some_and(|next| next.is_lowercase())));
        if (breaks || hump) && !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
        if !breaks {
            out.push(c);
        }
        previous = c;
    }
    out.truncate(out.trim_end().len());
    out
}

/// Changes whenever the texts of a tool or the way its row is made change: old vectors are then not found.
pub(super) const RECIPE: &str = "n+d|p/3";

/// A parameter that this share of the roster has is boilerplate,
const COMMON: f32 = 0.1;

/// if at least so many tools have it.
const COMMON_LEAST: f32 = 3.0;

/// Characters of a text (Han and kana count three): about 128 tokens of multilingual-e5-small, at which the figures above
/// were measured. 64 tokens find half a point less; 400 cost the builtin embedder a second a text and, as it takes the
/// mean over tokens, drown what a tool does in what its parameters are.
const LONGEST: usize = 480;

/// Runs that are read: a list that changes its script at every word would cost an embedding a word.
const MOST_RUNS: usize = 8;

/// A number for a character's script, as far as blocks of Unicode tell: what is told apart is languages written in
/// different letters, never which language it is. Latin, signs and digits are 0.
fn script(c: char) -> u32 {
    match c as u32 {
        0..0x370 | 0x1E00..0x1F00 | 0x2000..0x2E80 => 0,
        _ if passages::weight(c) > 1 => 0x4E,
        0xAC00..0xD7B0 => 0xAC,
        0xFB50..0xFE00 | 0xFE70..0xFF00 | 0x750..0x780 | 0x8A0..0x900 => 0x6,
        other => other >> 8,
    }
}

fn extra(document: &Document) -> String {
    let mut out = String::new();
    if !document.keywords.is_empty() {
        out = format!("Keywords: {}.", document.keywords.join(", "));
    }
    if !document.category.is_empty() {
        out = join(&out, &format!("Category: {}", words(&document.category)));
    }
    out
}

fn join(left: &str, right: &str) -> String {
    match (left.is_empty(), right.is_empty()) {
        (true, _) => right.to_owned(),
        (_, true) => left.to_owned(),
        _ => format!("{left} {right}"),
    }
}

fn head(mut text: String, most: usize) -> String {
    let mut sum = 0;
    let cut = text.char_indices().find(|(_, c)| {
        sum += passages::weight(*c);
        sum > most
    });
    if let Some((cut, _)) = cut {
        text.truncate(cut);
    }
    text
}

fn feed(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weather() -> Document {
        Document {
            name: "getWeather_v2".into(),
            description: "Current weather of a place".into(),
            keywords: vec!["rain".into(), "heat".into()],
            category: "info".into(),
            parameters: parameters(
                r#"{"type":"object","properties":{"city":{"type":"string","description":"where"},"unit":{"enum":["C","F",1]}}}"#,
            ),
        }
    }

    #[test]
    fn identifiers_become_words() {
        assert_eq!(words("getHTTPResponse"), "get HTTP Response");
        assert_eq!(words("find_many-records.v2:list/all"), "find many records v2 list all");
        assert_eq!(words("__x__"), "x");
        assert_eq!(words("oauth2Token"), "oauth2 Token");
        assert_eq!(words("خريطة_المكان"), "خريطة المكان");
        assert_eq!(words(""), "");
    }

    #[test]
    fn a_tool_has_a_name_a_description_and_all_it_says() {
        assert_eq!(
            texts(&weather()),
            [
                "get Weather v2",
                "Current weather of a place",
                "get Weather v2. Current weather of a place Keywords: rain, heat. Category: info city: where unit: ",
            ]
        );
        let bare = Document { name: "send_mail".into(), ..Document::default() };
        assert_eq!(texts(&bare), ["send mail", "send mail", "send mail."]);
        let plain = Document { keywords: Vec::new(), ..weather() };
        assert_eq!(texts(&plain)[1], "Current weather of a place Category: info");
        let words = Document { description: " ".into(), ..weather() };
        assert_eq!(texts(&words)[1], "get Weather v2");
    }

    #[test]
    fn keywords_are_read_in_runs_of_one_script() {
        let of = |keywords: &[&str]| {
            runs(&Document { keywords: keywords.iter().map(|k| (*k).into()).collect(), ..Document::default() })
        };
        assert_eq!(
            of(&["rain", "heat", "مطر", "گرما 2", "yağmur", "下雨", "雨が降る", "비"]),
            ["rain, heat", "مطر, گرما 2", "yağmur", "下雨, 雨が降る", "비"]
        );
        assert_eq!(of(&["CRM 客户", "资料"]), ["CRM 客户, 资料"]);
        assert_eq!(of(&["", " "]), Vec::<String>::new());
        assert_eq!(of(&["a", "я"].repeat(40)).len(), MOST_RUNS);
    }

    #[test]
    fn parameters_of_odd_schemas_are_none() {
        for odd in ["", "null", "[]", "{}", r#"{"properties":[]}"#, r#"{"properties":null}"#, "{"] {
            assert_eq!(parameters(odd), [], "{odd}");
        }
        assert_eq!(weather().parameters[1].values, ["C", "F"]);
        assert_eq!(parameters(r#"{"properties":{"a":true}}"#)[0].name, "a");
    }

    #[test]
    fn a_key_knows_its_texts_and_its_model() {
        let (one, mut two) = (weather(), weather());
        assert_eq!(key(&one, "m"), key(&two, "m"));
        assert_ne!(key(&one, "m"), key(&two, "n"));
        two.description.push('!');
        assert_ne!(key(&one, "m"), key(&two, "m"));
        assert_ne!(
            key(&one, "m"),
            key(&Document { keywords: vec!["rain".into(), "heat".into(), "x".into()], ..one.clone() }, "m")
        );
        assert_ne!(corpus_hash(&[one.clone(), two.clone()], "m"), corpus_hash(&[two, one], "m"));
    }

    #[test]
    fn parameters_that_much_of_the_roster_shares_are_not_a_tools_own() {
        let tool = |name: &str, parameters: &[&str]| Document {
            name: name.into(),
            description: "Does it".into(),
            parameters: parameters.iter().map(|p| Parameter { name: (*p).into(), ..Parameter::default() }).collect(),
            ..Document::default()
        };
        let roster =
            [tool("a", &["page", "city"]), tool("b", &["page"]), tool("c", &["page"]), tool("d", &["city", "wind"])];
        let owned = owned(&roster);
        assert_eq!(owned.last(), Some(&1.0), "two tools are too few to be common");
        assert!(owned[0] < 1.0 && owned[1] < owned[0], "{owned:?}");
        assert_eq!(super::owned(&[Document::default()]), [1.0]);
    }

    #[test]
    fn endless_descriptions_are_cut_at_a_character() {
        let document = Document { name: "x".into(), description: "ش".repeat(9_000), ..Document::default() };
        assert!(texts(&document).iter().all(|text| text.chars().count() <= LONGEST));
        let document = Document { description: "天".repeat(9_000), ..document };
        assert_eq!(texts(&document)[1].chars().count(), LONGEST / 3);
    }
}
