//! A case that misses tools, as it is listed. NOT which are missed.

use serde::Serialize;

use super::input::Case;

/// A case and the tools it misses.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Missing {
    pub id: String,
    pub lang: String,
    pub prompt: String,
    pub tools: Vec<String>,
    /// Places of these tools, from 1; 0: not in the roster.
    pub places: Vec<usize>,
}

impl Missing {
    pub fn new(case: &Case, tools: impl Iterator<Item = (String, usize)>) -> Option<Self> {
        let (tools, places): (Vec<String>, Vec<usize>) = tools.unzip();
        (!tools.is_empty()).then(|| Self {
            id: case.id.clone(),
            lang: case.lang.clone(),
            prompt: case.prompt(),
            tools,
            places,
        })
    }

    /// For a person.
    pub fn line(&self) -> String {
        let tools = self.tools.iter().zip(&self.places);
        let tools: Vec<String> = tools
            .map(|(tool, place)| if *place == 0 { tool.clone() } else { format!("{tool} (place {place})") })
            .collect();
        format!("{} \"{}\" -> {}", self.lang, self.prompt, tools.join(", "))
    }
}
