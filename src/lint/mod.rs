//! What makes a roster hard to search, tool by tool, with the evidence and what to do about it. NOT figures: how much
//! each costs, `eval` says.

mod confused;
mod parameters;
mod prose;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::embed::Embeddings;
use crate::eval::measure::{Measured, Prepared};
use crate::eval::report::thin;
use crate::eval::{self, Problem};

/// Something that is wrong with a tool's description.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub tool: String,
    pub kind: Kind,
    pub why: String,
    /// Requests, or what else shows it.
    pub evidence: Vec<String>,
    pub suggestion: String,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The description says too little.
    Thin,
    /// The description speaks to programmers.
    ApiSpeak,
    /// The description says it in words nobody asks with.
    Formal,
    /// Two tools read alike.
    Duplicate,
    /// It comes first for requests that need others.
    Draws,
    /// What people would say stands in its parameters only.
    Parameters,
}

impl Kind {
    pub const ALL: [Self; 6] =
        [Self::Thin, Self::ApiSpeak, Self::Formal, Self::Duplicate, Self::Draws, Self::Parameters];

    pub fn label(self) -> &'static str {
        match self {
            Self::Thin => "thin",
            Self::ApiSpeak => "api-speak",
            Self::Formal => "formal",
            Self::Duplicate => "duplicate",
            Self::Draws => "draws",
            Self::Parameters => "parameters",
        }
    }
}

/// What a description should be.
const ADVICE: &str = "say what it does plus when to use it, in the words people type";

/// Looks at every roster of the options; the requests of their sets are evidence.
pub async fn run(options: &eval::Options, embeddings: &Embeddings) -> Result<Vec<Finding>, Problem> {
    let (prepared, _) = eval::prepared(options, embeddings).await?;
    let mut findings = Vec::new();
    for set in prepared {
        findings.extend(of_roster(&set));
        let asked = !set.cases.is_empty();
        let bar = eval::bar::Bar::new(set.cases.len(), "ranked");
        let index = std::sync::Arc::clone(&set.space.index);
        let measured = set.rank(options.head.as_deref(), options.k, &bar);
        if asked {
            findings.extend(of_requests(&measured, index.documents()));
        }
    }
    findings.sort_by_key(|finding| finding.kind);
    Ok(findings)
}

/// What the roster alone shows.
fn of_roster(set: &Prepared) -> Vec<Finding> {
    let documents = set.tools.documents.as_slice();
    let mut findings = Vec::new();
    for document in documents {
        let finding = |kind, why: String, evidence: Vec<String>, suggestion: String| Finding {
            tool: document.name.clone(),
            kind,
            why,
            evidence,
            suggestion,
        };
        if let Some(thin) = thin(document) {
            let evidence = Some(document.description.clone()).filter(|said| !said.is_empty());
            findings.push(finding(Kind::Thin, thin.why, evidence.into_iter().collect(), ADVICE.to_owned()));
            continue;
        }
        if let Some(words) = prose::api_speak(&document.description) {
            let why = "it tells a programmer how to call it, not a person what it is for".to_owned();
            findings.push(finding(Kind::ApiSpeak, why, words, format!("leave the machinery out and {ADVICE}")));
        } else if let Some(words) = prose::formal(&document.description) {
            let why = "nobody asks in these words".to_owned();
            findings.push(finding(Kind::Formal, why, words, format!("write as one would ask for it: {ADVICE}")));
        }
    }
    findings.extend(parameters::buried(documents));
    findings.extend(confused::duplicates(documents, &set.space.index));
    findings
}

/// What requests show.
fn of_requests(measured: &Measured, documents: &[crate::retrieval::document::Document]) -> Vec<Finding> {
    let mut findings = confused::drawing(measured, documents);
    findings.extend(parameters::known_by_parameters(measured, documents));
    findings
}

/// For a person, by kind.
pub fn text(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "Nothing found.\n".to_owned();
    }
    let mut by_kind: BTreeMap<Kind, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        by_kind.entry(finding.kind).or_default().push(finding);
    }
    let mut out = String::new();
    for (kind, findings) in &by_kind {
        out.push_str(&format!("{} ({})\n", kind.label(), findings.len()));
        for finding in findings {
            out.push_str(&format!("  {}: {}\n", finding.tool, finding.why));
            finding.evidence.iter().for_each(|line| out.push_str(&format!("      {line}\n")));
            out.push_str(&format!("    -> {}\n", finding.suggestion));
        }
        out.push('\n');
    }
    let counts: Vec<String> = by_kind.iter().map(|(kind, of)| format!("{} {}", of.len(), kind.label())).collect();
    out.push_str(&format!("{} findings: {}\n", findings.len(), counts.join(", ")));
    out
}

/// For a machine.
pub fn json(findings: &[Finding]) -> String {
    serde_json::to_string_pretty(findings).unwrap_or_default()
}
