//! What a model looks for, out of arguments that may be anything. NOT an answer.

use crate::wire::json::{self, Object};

/// The query in the text of `find_tools`' arguments; `None` when it cannot be read.
pub fn query(arguments: &str) -> Option<String> {
    let arguments = arguments.trim();
    let text = if let Some(object) = Object::parse(arguments) {
        let named = object.find("query").and_then(json::string);
        named.or_else(|| object.0.iter().find_map(|(_, raw)| json::string(raw)))?.into_owned()
    } else {
        let bare = serde_json::from_str::<String>(arguments).ok()?;
        // Some models write the object as a string.
        if bare.trim_start().starts_with('{') { query(&bare)? } else { bare }
    };
    Some(text).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_arguments_are_no_query() {
        for broken in ["", "  ", "{}", "{\"query", "{\"query\":7}", "null", "[1]", "\"\"", "{\"query\":\" \"}"] {
            assert_eq!(query(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_query_is_read_however_it_is_wrapped() {
        for wrapped in [r#"{"query":"mail ✉"}"#, r#""mail ✉""#, r#"{"q":"mail \u2709"}"#, r#""{\"query\":\"mail ✉\"}""#]
        {
            assert_eq!(query(wrapped).as_deref(), Some("mail ✉"), "{wrapped}");
        }
    }
}
