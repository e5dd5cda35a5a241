//! Tools that are taken for each other: siblings that read alike, and those that requests for others find first. NOT
//! prose.

use std::collections::{BTreeMap, HashMap};

use super::{ADVICE, Finding, Kind, prose};
use crate::eval::measure::Measured;
use crate::retrieval::document::Document;
use crate::retrieval::index::Index;
use crate::retrieval::lexical;
use crate::retrieval::matrix::product;

/// Likeness of two tools' vectors, the roster's mean taken away, from which they read alike. Of the 76,812 pairs of tools
/// in 14 public servers' rosters, four evaluation sets and the demo, 40 are at or above it; 35 of these are siblings that
/// a request cannot tell apart unless it says the one word (a project's wiki page and a group's, a task list and its
/// tasks, all of gitlab's pairs of that kind). At .9 there are 11, all right, and a family is half found; between .8 and
/// .85 fifty more, half of them plain opposites (to resolve and to unresolve).
const ALIKE: f32 = 0.85;
/// Places that count as "first".
const FIRST: usize = 3;
/// Requests that a tool draws before it is worth a word.
const LEAST: usize = 3;
/// Requests shown.
const SHOWN: usize = 3;

/// Pairs of tools that read alike, each told once.
pub(super) fn duplicates(documents: &[Document], index: &Index) -> Vec<Finding> {
    let rows: Vec<&[f32]> = (0..documents.len()).map(|at| index.row(at)).collect();
    let mut mean = vec![0f32; rows.first().map_or(0, |row| row.len())];
    for row in &rows {
        mean.iter_mut().zip(*row).for_each(|(sum, number)| *sum += number / rows.len() as f32);
    }
    let centred: Vec<Vec<f32>> = rows
        .iter()
        .map(|row| {
            let mut row: Vec<f32> = row.iter().zip(&mean).map(|(number, mean)| number - mean).collect();
            let norm = product(&row, &row).sqrt().max(f32::MIN_POSITIVE);
            row.iter_mut().for_each(|number| *number /= norm);
            row
        })
        .collect();
    let mut findings = Vec::new();
    for (at, (document, row)) in documents.iter().zip(&centred).enumerate() {
        let later = documents.iter().zip(&centred).skip(at + 1);
        let mut alike: Vec<(f32, &Document)> = later
            .map(|(other, vector)| (product(row, vector), other))
            .filter(|(likeness, _)| *likeness >= ALIKE)
            .collect();
        alike.sort_by(|a, b| b.0.total_cmp(&a.0));
        let Some((_, nearest)) = alike.first() else { continue };
        let names: Vec<&str> = alike.iter().take(SHOWN).map(|(_, other)| other.name.as_str()).collect();
        let more = alike.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (one, other) = (only(document, nearest), only(nearest, document));
        findings.push(Finding {
            tool: document.name.clone(),
            kind: Kind::Duplicate,
            why: format!("it reads like {}{more}", names.join(", ")),
            evidence: vec![
                format!("{} alone says: {one}", document.name),
                format!("{} alone says: {other}", nearest.name),
            ],
            suggestion: format!("say in each what it does that the other does not ({ADVICE}), or make them one tool"),
        });
    }
    findings
}

/// Tools that stand among the first for requests that need others, which come behind them.
pub(super) fn drawing(measured: &Measured, documents: &[Document]) -> Vec<Finding> {
    let mut drawn: BTreeMap<usize, Vec<Drawn>> = BTreeMap::new();
    let mut cases = 0;
    for ranked in measured.ranked.iter().filter(|ranked| !ranked.places.is_empty()) {
        cases += 1;
        let Some((wanted, place)) = ranked.places.iter().max_by_key(|(_, place)| *place) else { continue };
        if *place <= FIRST {
            continue;
        }
        let expected = |tool: &usize| {
            documents.get(*tool).is_some_and(|document| ranked.places.iter().any(|(name, _)| *name == document.name))
        };
        for tool in ranked.top.iter().take(FIRST).filter(|tool| !expected(tool)) {
            drawn.entry(*tool).or_default().push(Drawn {
                prompt: ranked.case.prompt(),
                wanted: wanted.clone(),
                place: *place,
                missed: *place > ranked.taken,
            });
        }
    }
    // What every tool would draw if all drew alike, and several times that.
    let usual = drawn.values().map(Vec::len).sum::<usize>() / documents.len().max(1);
    let least = LEAST.max(4 * usual).max(cases / 100);
    let mut findings: Vec<(usize, Finding)> = Vec::new();
    for (tool, mut requests) in drawn {
        let Some(document) = documents.get(tool).filter(|_| requests.len() >= least) else { continue };
        let missed = requests.iter().filter(|drawn| drawn.missed).count();
        let mut victims: HashMap<&str, usize> = HashMap::new();
        requests.iter().for_each(|drawn| *victims.entry(drawn.wanted.as_str()).or_default() += 1);
        let victim = victims.iter().max_by_key(|(name, count)| (**count, **name)).map(|(name, _)| (*name).to_owned());
        // Those of the tool that loses most, near misses first: what comes last of all is mostly a label that is wrong.
        requests.sort_by_key(|drawn| (Some(&drawn.wanted) != victim.as_ref(), !drawn.missed, drawn.place));
        let place = |place: usize| if place == usize::MAX { "nowhere".to_owned() } else { place.to_string() };
        let shown = requests.iter().take(SHOWN);
        let evidence = shown.map(|Drawn { prompt, wanted, place: at, .. }| {
            format!("\"{prompt}\" needs {wanted} (place {})", place(*at))
        });
        let words = victim.as_deref().and_then(|victim| documents.iter().find(|document| document.name == victim));
        let words = words.map(|document| prose::unheard(measured, document)).unwrap_or_default();
        let said = if words.is_empty() { String::new() } else { format!(" (people say: {})", words.join(", ")) };
        let victim = victim.unwrap_or_default();
        let finding = Finding {
            tool: document.name.clone(),
            kind: Kind::Draws,
            why: format!(
                "it comes before the tool needed in {} of {cases} requests, which is then not selected in {missed}",
                requests.len()
            ),
            evidence: evidence.collect(),
            suggestion: format!("narrow its description to what it alone does, and in {victim} {ADVICE}{said}"),
        };
        findings.push((requests.len(), finding));
    }
    findings.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    findings.into_iter().map(|(_, finding)| finding).collect()
}

/// A request that a tool drew.
struct Drawn {
    prompt: String,
    /// The tool it needs, and its place.
    wanted: String,
    place: usize,
    /// That tool was not selected.
    missed: bool,
}

/// Words of the first tool that the second does not have.
fn only(one: &Document, other: &Document) -> String {
    let said = |document: &Document| {
        lexical::words(&format!("{} {}", crate::retrieval::document::words(&document.name), document.description))
    };
    let theirs = said(other);
    let mut own: Vec<String> = Vec::new();
    for word in said(one) {
        if !theirs.contains(&word) && !own.contains(&word) {
            own.push(word);
        }
    }
    own.truncate(10);
    if own.is_empty() { "nothing".to_owned() } else { own.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::input::{Case, Tools};
    use crate::eval::measure::Ranked;
    use crate::retrieval::question::Utterance;

    fn tool(name: &str, description: &str) -> Document {
        Document { name: name.into(), description: description.into(), ..Document::default() }
    }

    #[test]
    fn siblings_that_read_alike_are_told_once_with_what_differs() {
        let documents =
            vec![tool("get_task", "Show one task"), tool("list_tasks", "Show every task"), tool("weather", "Forecast")];
        let matrix = [[2.0, 0.1, 0.0], [2.0, 0.12, 0.0], [0.0, 0.0, 2.5]].concat();
        let index = Index::build(documents.clone(), matrix, &[]).expect("index");
        let found = duplicates(&documents, &index);
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((finding.tool.as_str(), finding.why.as_str()), ("get_task", "it reads like list_tasks"));
        assert!(finding.evidence[0].ends_with("get, one"), "{finding:?}");
    }

    #[test]
    fn a_tool_that_draws_requests_is_shown_with_them() {
        let documents: Vec<Document> =
            (0..20).map(|i| tool(&format!("t{i}"), "does a thing that others do not")).collect();
        let ranked = |i: usize| Ranked {
            case: Case {
                dialogue: vec![Utterance { text: format!("buzz me {i}"), reply_before: String::new() }],
                ..Case::default()
            },
            places: vec![("t7".into(), 15)],
            taken: 12,
            top: vec![3, 4 + i, 9 + i],
            search: Vec::new(),
        };
        let measured = Measured { name: "s".into(), tools: Tools::default(), ranked: (0..4).map(ranked).collect() };
        let found = drawing(&measured, &documents);
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(finding.tool, "t3");
        assert!(finding.why.contains("4 of 4 requests") && finding.why.contains("not selected in 4"), "{finding:?}");
        assert!(finding.suggestion.contains("in t7") && finding.suggestion.contains("buzz"), "{finding:?}");
        assert_eq!(finding.evidence.len(), SHOWN);
    }
}
