//! Did a tool's answer say that the call failed? Only Anthropic's wire has a field for it; elsewhere it is read from
//! what tools commonly answer. NOT the meaning of an answer: what is not plainly a failure counts as none.

use serde_json::value::RawValue;

use super::json::Object;

/// Does this text of an answer say that the call failed: an object with an error, or words that begin with one?
pub(super) fn is_failure(text: &str) -> bool {
    let text = text.trim_start();
    if let Some(object) = text.starts_with('{').then(|| Object::parse(text)).flatten() {
        return object_fails(&object);
    }
    let head: String = text.chars().take(LONGEST).flat_map(char::to_lowercase).collect();
    BEGINNINGS.iter().any(|beginning| {
        head.strip_prefix(beginning).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    })
}

/// The same of an answer that is an object.
pub(super) fn object_fails(object: &Object<'_>) -> bool {
    let says = |key: &str, what: &str| object.find(key).is_some_and(|raw| raw.get() == what);
    let error = ["error", "errors"].iter().filter_map(|key| object.find(key)).any(|raw| !is_nothing(raw));
    let status = object
        .text("status")
        .is_some_and(|status| ["error", "failed", "failure"].iter().any(|bad| status.eq_ignore_ascii_case(bad)));
    error
        || status
        || ["isError", "is_error"].iter().any(|key| says(key, "true"))
        || ["success", "ok"].iter().any(|key| says(key, "false"))
}

const BEGINNINGS: [&str; 4] = ["error", "traceback", "exception", "failed"];

/// The longest beginning, and what follows it.
const LONGEST: usize = 12;

fn is_nothing(raw: &RawValue) -> bool {
    matches!(raw.get(), "null" | "false" | "\"\"" | "[]" | "{}" | "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_say_when_they_fail() {
        for text in [
            "Error: no such record",
            " ERROR",
            "error_code 4",
            "Traceback (most recent call last):",
            "failed to connect",
            r#"{"error":"not found"}"#,
            r#"{"errors":[{"message":"x"}]}"#,
            r#"{"isError":true,"content":[]}"#,
            r#"{"success":false}"#,
            r#"{"status":"FAILED"}"#,
        ] {
            assert!(is_failure(text), "{text}");
        }
        for text in [
            "",
            "Errors were found in 3 files",
            "Erroneous Monk is a band",
            r#"{"error":null,"records":[]}"#,
            r#"{"errors":[],"status":"ok","success":true}"#,
            r#"[{"error":"of one row"}]"#,
            "3 records",
            "{ not json, error",
        ] {
            assert!(!is_failure(text), "{text}");
        }
    }
}
