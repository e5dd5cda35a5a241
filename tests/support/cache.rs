//! A prompt cache as real providers have one: over the serialised request in the
//! provider's order (tools, system, messages; K3's declarations where they stand),
//! in chunks of 256 tokens, with a life span. NOT Packlight's own simulation of one:
//! what is claimed of the product is measured with another ruler.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::received::list;

/// Tokens of a chunk: a match is cut to whole ones.
const CHUNK_TOKENS: usize = 256;
/// Bytes of a token. Near enough: what is compared is shares.
const TOKEN_BYTES: usize = 4;

/// What a provider remembers of the prompts of one credential.
#[derive(Debug)]
pub struct PromptCache {
    life: Duration,
    /// When the prefix of this digest was last used.
    chunks: HashMap<[u8; 32], Duration>,
}

/// Tokens of one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Billed {
    pub prompt: u64,
    pub cached: u64,
}

impl PromptCache {
    pub fn new(life: Duration) -> Self {
        Self { life, chunks: HashMap::new() }
    }

    /// Takes a request at `now`, since whenever.
    pub fn take(&mut self, body: &Value, now: Duration) -> Billed {
        let prompt = serialised(body);
        let bytes = CHUNK_TOKENS * TOKEN_BYTES;
        let (mut hash, mut cached, mut matching) = (Sha256::new(), 0, true);
        for chunk in prompt.as_bytes().chunks(bytes) {
            hash.update(chunk);
            if chunk.len() < bytes {
                break;
            }
            let used = self.chunks.insert(hash.clone().finalize().into(), now);
            matching &= used.is_some_and(|used| now.saturating_sub(used) <= self.life);
            cached += if matching { CHUNK_TOKENS as u64 } else { 0 };
        }
        let prompt = (prompt.len() / TOKEN_BYTES) as u64;
        // What stands behind the last whole chunk is read again only with it.
        Billed { prompt, cached: cached.min(prompt) }
    }
}

/// The prompt in the provider's order. Members that do not reach the model are not in it.
fn serialised(body: &Value) -> String {
    let mut prompt = String::new();
    for tool in list(&body["tools"]) {
        prompt.push_str(&tool.to_string());
    }
    for key in ["system", "systemInstruction"] {
        if !body[key].is_null() {
            prompt.push_str(&body[key].to_string());
        }
    }
    for message in list(&body["messages"]).iter().chain(&list(&body["contents"])) {
        prompt.push_str(&message.to_string());
    }
    prompt
}
