//! An explanation for a person. NOT the figures.

use comfy_table::{CellAlignment, Table, presets};

use super::Explanation;
use crate::chart::html::cut;

/// Characters of a text that is shown.
const LONGEST: usize = 100;

/// Tools shown beyond those that are selected.
const BEYOND: usize = 8;

impl Explanation {
    /// For a person.
    pub fn text(&self) -> String {
        let mut out = self.model.clone();
        if let Some(head) = &self.head {
            out.push_str(&format!(", head {head}"));
        }
        out.push_str(&format!("\n\n\"{}\"\n", line(&self.message)));
        if let Some(left) = &self.without_negated {
            out.push_str(&format!("What it rules out is removed: \"{}\"\n", line(left)));
        }
        if self.contentless {
            out.push_str("It says nothing of its own: what it follows is the question.\n");
        }
        out.push_str("\nRead:\n");
        for heard in &self.heard {
            let (role, weight, known) = (heard.role, heard.weight, heard.coverage * 100.0);
            let text = line(&heard.text);
            out.push_str(&format!("  {weight:.2} x {role:<8} {known:>3.0} % of its words known  \"{text}\"\n"));
        }
        out.push_str(&format!("\n{}\n", self.table()));
        out.push_str(&format!(
            "the first {} are selected; scores are in units of what messages without content cause on this roster\n",
            self.k
        ));
        out
    }

    /// For a machine.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_BORDERS_ONLY);
        table.set_header([
            "",
            "tool",
            "score",
            "name",
            "description",
            "parameters",
            "keywords",
            "words",
            "context",
            "other",
        ]);
        for tool in self.tools.iter().take(self.k + BEYOND) {
            let number = |number: f32| if number.abs() < 0.005 { "·".to_owned() } else { format!("{number:+.2}") };
            let by_text = match tool.by_text {
                Some(by) => [by.name, by.description, by.parameters, by.keywords].map(number),
                None => ["".to_owned(), number(tool.dense), String::new(), String::new()],
            };
            let place = if tool.rank <= self.k { tool.rank.to_string() } else { format!("({})", tool.rank) };
            let mut row = vec![place, tool.tool.clone(), format!("{:+.2}", tool.score)];
            row.extend(by_text);
            row.extend([tool.words, tool.context, tool.other].map(number));
            table.add_row(row);
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

fn line(text: &str) -> String {
    cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST)
}
