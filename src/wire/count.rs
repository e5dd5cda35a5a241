//! How a provider is asked to count: Kimi's `tokenizers/estimate-token-count` and Gemini's `:countTokens`. NOT when it is
//! asked (`proxy/counting.rs`).

use serde::Deserialize;

use super::{Format, json};

/// Path (below the prefix, with query) and body of the question what a roster counts. `path`: of a chat request; `tools`:
/// its `tools`, raw. `None`: this wire has no such endpoint.
pub fn question(format: Format, path: &str, model: &str, tools: &str) -> Option<(String, String)> {
    let (route, query) = path.split_once('?').map_or((path, ""), |(route, query)| (route, query));
    match format {
        // Kimi's counts messages only: the roster goes as the text of one.
        Format::OpenAi => {
            let route = route.strip_suffix("chat/completions")?;
            let (model, text) = (json::quoted(model), json::quoted(tools));
            let body = format!(r#"{{"model":{model},"messages":[{{"role":"user","content":{text}}}]}}"#);
            Some((format!("{route}tokenizers/estimate-token-count"), body))
        }
        Format::Gemini => {
            let (route, _) = route.rsplit_once(':')?;
            let model = json::quoted(&format!("models/{model}"));
            let contents = r#"[{"role":"user","parts":[{"text":"."}]}]"#;
            let body =
                format!(r#"{{"generateContentRequest":{{"model":{model},"contents":{contents},"tools":{tools}}}}}"#);
            // A key may stand there; `alt=sse` is for streams.
            let kept: Vec<&str> = query.split('&').filter(|pair| pair.starts_with("key=")).collect();
            let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
            Some((format!("{route}:countTokens{query}"), body))
        }
        Format::Anthropic => None,
    }
}

/// The count in an answer.
pub fn answer(body: &[u8]) -> Option<u64> {
    let answer: Answer = serde_json::from_slice(body).ok()?;
    answer.total_tokens.or(answer.data.and_then(|data| data.total_tokens))
}

/// Gemini's `totalTokens`, or Kimi's `data.total_tokens`.
#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "totalTokens")]
    total_tokens: Option<u64>,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    total_tokens: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wire_is_asked_in_its_own_words() {
        let (path, body) =
            question(Format::OpenAi, "/v1/chat/completions", "kimi-k3", r#"[{"a":"\n"}]"#).expect("asked");
        assert_eq!(path, "/v1/tokenizers/estimate-token-count");
        let body: serde_json::Value = serde_json::from_str(&body).expect("json");
        assert_eq!(body["messages"][0]["content"], r#"[{"a":"\n"}]"#);
        let path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse&key=k";
        let (path, body) = question(Format::Gemini, path, "gemini-2.5-pro", "[]").expect("asked");
        assert_eq!(path, "/v1beta/models/gemini-2.5-pro:countTokens?key=k");
        let body: serde_json::Value = serde_json::from_str(&body).expect("json");
        assert_eq!(body["generateContentRequest"]["model"], "models/gemini-2.5-pro");
        assert_eq!(question(Format::Anthropic, "/v1/messages", "m", "[]"), None);
        assert_eq!(answer(br#"{"data":{"total_tokens":80}}"#), Some(80));
        assert_eq!(answer(br#"{"totalTokens":31}"#), Some(31));
        assert_eq!(answer(b"{}"), None);
    }
}
