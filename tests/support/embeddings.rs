//! The provider's embedding routes: hashed bags of words, so that texts which
//! share words are near and narrowing works without the model; and their faults.

use serde_json::{Value, json};

use super::received::{Received, list};

/// Components of every vector.
pub const DIMENSIONS: usize = 256;

/// What the embedding routes do wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    #[default]
    None,
    /// The connection is closed without a word.
    Down,
    /// This status.
    Status(u16),
    /// No answer before `Provider::release`.
    Slow,
    /// One vector too few.
    WrongCount,
    /// A component that is `NaN`, which is not even JSON.
    NaN,
    /// A component that is `null`.
    Null,
    /// A last vector of another length.
    WrongLength,
    /// Vectors without direction.
    Zero,
}

/// The answer to an embedding request, or why it is a 400.
pub fn answer(request: &Received, fault: Fault) -> Result<String, String> {
    let body = request.json();
    let gemini = request.path.contains(":batchEmbedContents");
    let texts = if gemini { gemini_texts(request, &body)? } else { openai_texts(&body)? };
    let mut vectors: Vec<Vec<f32>> = texts.iter().map(|text| embed(text)).collect();
    match fault {
        Fault::WrongCount => drop(vectors.pop()),
        Fault::Zero => vectors.iter_mut().for_each(|v| v.fill(0.0)),
        Fault::WrongLength => {
            if let Some(last) = vectors.last_mut() {
                last.pop();
            }
        }
        _ => {}
    }
    let mut numbers: Vec<String> = vectors.iter().map(|v| json!(v).to_string()).collect();
    if let (Some(first), Some(word)) = (numbers.first_mut(), not_a_number(fault)) {
        let end = first.find(',').unwrap_or(first.len());
        first.replace_range(1..end, word);
    }
    if gemini {
        let items: Vec<String> = numbers.iter().map(|n| format!(r#"{{"values":{n}}}"#)).collect();
        return Ok(format!(r#"{{"embeddings":[{}]}}"#, items.join(",")));
    }
    let item = |(i, n): (usize, &String)| format!(r#"{{"object":"embedding","index":{i},"embedding":{n}}}"#);
    let items: Vec<String> = numbers.iter().enumerate().map(item).collect();
    Ok(format!(
        r#"{{"object":"list","model":"bag-of-words","data":[{}],"usage":{{"prompt_tokens":1,"total_tokens":1}}}}"#,
        items.join(",")
    ))
}

fn not_a_number(fault: Fault) -> Option<&'static str> {
    match fault {
        Fault::NaN => Some("NaN"),
        Fault::Null => Some("null"),
        _ => None,
    }
}

fn openai_texts(body: &Value) -> Result<Vec<String>, String> {
    if !body["model"].is_string() {
        return Err("you must provide a model parameter".into());
    }
    let input = &body["input"];
    let texts = if input.is_string() { vec![input.clone()] } else { list(input) };
    let texts: Vec<String> = texts.iter().filter_map(|t| t.as_str().map(str::to_owned)).collect();
    match texts.is_empty() || texts.iter().any(String::is_empty) {
        true => Err("'input' must be one or more non-empty strings".into()),
        false => Ok(texts),
    }
}

fn gemini_texts(request: &Received, body: &Value) -> Result<Vec<String>, String> {
    let requests = list(&body["requests"]);
    if requests.is_empty() || requests.len() > 100 {
        return Err(format!("BatchEmbedContentsRequest.requests: {} in batch, at most 100", requests.len()));
    }
    let model = request.path.rsplit("/models/").next().and_then(|m| m.split(':').next()).unwrap_or_default();
    let mut texts = Vec::new();
    for one in &requests {
        if one["model"] != format!("models/{model}") {
            return Err("the model of a batch item is not the model of the path".into());
        }
        if !matches!(one["taskType"].as_str(), None | Some("RETRIEVAL_DOCUMENT" | "RETRIEVAL_QUERY")) {
            return Err("unknown taskType".into());
        }
        let parts = list(&one["content"]["parts"]);
        let [part] = parts.as_slice() else {
            return Err("one part a content: several are fused into one vector".into());
        };
        texts.push(part["text"].as_str().ok_or("a part without text")?.to_owned());
    }
    Ok(texts)
}

/// The unit vector of a text: every word adds to one component, its first five letters to another.
pub fn embed(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0f32; DIMENSIONS];
    let lower = text.to_lowercase();
    for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|w| w.chars().count() > 2) {
        vector[slot(word)] += 1.0;
        let stem: String = word.chars().take(5).collect();
        vector[slot(&format!("{stem}*"))] += 0.5;
    }
    vector[0] += 0.05;
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.iter().map(|x| x / norm).collect()
}

/// FNV-1a: the same on every machine.
fn slot(word: &str) -> usize {
    let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    1 + usize::try_from((hash ^ (hash >> 29)) % (DIMENSIONS as u64 - 1)).unwrap()
}
