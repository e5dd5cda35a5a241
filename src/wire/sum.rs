//! Two objects of numbers added up field by field, each number where it stood: how
//! usage of several legs becomes that of one reply. NOT which fields there are.

use crate::wire::json::{self, Object};

/// Levels of an object that are added up; deeper ones are the later leg's. No provider has more than three.
const LEVELS: usize = 8;

/// `later` with every integer of `earlier` added, recursively; what only `earlier` has stands behind.
pub fn sum(earlier: &str, later: &str) -> String {
    summed(earlier, later, LEVELS)
}

fn summed(earlier: &str, later: &str, levels: usize) -> String {
    if levels == 0 {
        return later.to_owned();
    }
    let (Some(a), Some(b)) = (Object::parse(earlier), Object::parse(later)) else {
        let both = earlier.parse::<u64>().ok().zip(later.parse::<u64>().ok());
        return match both.and_then(|(a, b)| a.checked_add(b)) {
            Some(total) => total.to_string(),
            None if later == "null" => earlier.to_owned(),
            None => later.to_owned(),
        };
    };
    let own = b.0.iter().map(|(key, raw)| {
        let add = |other: &serde_json::value::RawValue| summed(other.get(), raw.get(), levels - 1);
        (key, a.find(key).map_or_else(|| raw.get().to_owned(), add))
    });
    let gone = a.0.iter().filter(|(key, _)| b.find(key).is_none()).map(|(key, raw)| (key, raw.get().to_owned()));
    let members: Vec<String> = own.chain(gone).map(|(key, value)| format!("{}:{value}", json::quoted(key))).collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_add_up_in_place_and_absent_fields_stay_absent() {
        let leg1 = r#"{"prompt_tokens":10,"cached_tokens":4,"prompt_tokens_details":{"cached_tokens":4},"cost":0.5}"#;
        let leg2 = r#"{"prompt_tokens":20,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8,"x":null},"cost":1.5}"#;
        assert_eq!(
            sum(leg1, leg2),
            r#"{"prompt_tokens":30,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":12,"x":null},"cost":1.5,"cached_tokens":4}"#
        );
        assert_eq!(sum(r#"{"a":{"b":1}}"#, r#"{"a":null}"#), r#"{"a":{"b":1}}"#);
    }
}
