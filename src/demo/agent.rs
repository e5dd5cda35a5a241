//! The agent of the demo: sends its whole roster each time, as agents do, reads the stream, answers the calls from the
//! scene. It knows one base URL and nothing of narrowing. NOT a judge.

use std::time::Instant;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::scenes::{SYSTEM, Scene};
use super::tokens;
use crate::wire::sse;

/// What an agent of this model is called with.
const MODEL: &str = "kimi-k3";

/// An agent with its connection.
#[derive(Debug)]
pub struct Agent<'a> {
    client: Client<HttpConnector, Full<Bytes>>,
    /// Of the chat completions.
    url: String,
    roster: &'a RawValue,
}

/// One request and its reply, as the agent saw them.
#[derive(Debug)]
pub struct Exchange {
    pub sent_at: Instant,
    /// o200k tokens of the body it sent.
    pub tokens: usize,
    /// The `x-packlight` header; empty: none.
    pub verdict: String,
    /// The reply's bytes.
    pub raw: Bytes,
    pub reply: Reply,
}

/// A streamed reply put together.
#[derive(Debug, Default, PartialEq)]
pub struct Reply {
    pub text: String,
    pub calls: Vec<Call>,
    pub finish: String,
    /// Prompt tokens of the last usage, as the provider counted them.
    pub prompt_tokens: usize,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Call {
    pub id: String,
    pub name: String,
    /// JSON text.
    pub arguments: String,
}

/// Why there is no reply. Never holds a body.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("no answer from {url}: {why}")]
    Unreachable { url: String, why: String },
    #[error("{url} answered {status}: {body}")]
    Refused { url: String, status: StatusCode, body: String },
    #[error("the reply of {url} cannot be read: {why}")]
    Unreadable { url: String, why: String },
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: Value,
    messages: &'a [Value],
    tools: &'a RawValue,
}

impl<'a> Agent<'a> {
    /// `base_url`: as a client library takes it, such as `http://127.0.0.1:8787/kimi/v1`.
    pub fn new(base_url: &str, roster: &'a RawValue) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { client, url: format!("{base_url}/chat/completions"), roster }
    }

    /// Plays a scene: asks, answers the model's calls, until it only speaks. At most two requests more than the scene
    /// has steps.
    pub async fn play(&self, scene: &Scene) -> Result<Vec<Exchange>, AgentError> {
        let mut messages = opening(scene.ask);
        let mut exchanges = Vec::new();
        for _ in 0..scene.steps.len() + 2 {
            let exchange = self.send(&messages).await?;
            let calls = exchange.reply.calls.clone();
            exchanges.push(exchange);
            if calls.is_empty() {
                break;
            }
            messages.push(json!({"role": "assistant", "tool_calls": calls.iter().map(call_json).collect::<Vec<_>>()}));
            for call in calls {
                let answer = scene.steps.iter().find(|step| step.tool == call.name).map_or("{}", |step| step.answer);
                messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": answer}));
            }
        }
        Ok(exchanges)
    }

    /// One request that nothing follows.
    pub async fn ask(&self, text: &str) -> Result<Exchange, AgentError> {
        self.send(&opening(text)).await
    }

    async fn send(&self, messages: &[Value]) -> Result<Exchange, AgentError> {
        let stream_options = json!({"include_usage": true});
        let body = Body { model: MODEL, stream: true, stream_options, messages, tools: self.roster };
        let unreadable = |why: String| AgentError::Unreadable { url: self.url.clone(), why };
        let body = serde_json::to_string(&body).map_err(|error| unreadable(error.to_string()))?;
        let tokens = tokens(&body);
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, "Bearer demo")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| unreadable(error.to_string()))?;
        let unreachable = |why: String| AgentError::Unreachable { url: self.url.clone(), why };
        let sent_at = Instant::now();
        let response = self.client.request(request).await.map_err(|error| unreachable(error.to_string()))?;
        let status = response.status();
        let verdict = response.headers().get("x-packlight").and_then(|value| value.to_str().ok());
        let verdict = verdict.unwrap_or_default().to_owned();
        let raw = response.into_body().collect().await.map_err(|error| unreachable(error.to_string()))?.to_bytes();
        if status != StatusCode::OK {
            let body = String::from_utf8_lossy(&raw).into_owned();
            return Err(AgentError::Refused { url: self.url.clone(), status, body });
        }
        let reply = Reply::read(&raw).map_err(unreadable)?;
        Ok(Exchange { sent_at, tokens, verdict, raw, reply })
    }
}

impl Exchange {
    /// A field of the `x-packlight` header, such as `reason`; empty where it has none.
    pub fn verdict(&self, field: &str) -> &str {
        let fields = self.verdict.split(';').filter_map(|pair| pair.trim().split_once('='));
        fields.filter(|(name, _)| *name == field).map(|(_, value)| value).next().unwrap_or_default()
    }
}

impl Reply {
    /// Puts a stream together, as strictly as client libraries do: one `[DONE]`, at its end; one finish; calls by index,
    /// without a gap.
    pub fn read(raw: &[u8]) -> Result<Self, String> {
        let mut splitter = sse::Splitter::default();
        splitter.feed(raw);
        let mut reply = Self::default();
        let mut is_done = false;
        while let Some(frame) = splitter.next_frame() {
            let Some(data) = sse::data(&frame) else { continue };
            if is_done {
                return Err("something follows [DONE]".to_owned());
            }
            if data == b"[DONE]" {
                is_done = true;
                continue;
            }
            reply.add(&serde_json::from_slice(&data).map_err(|error| error.to_string())?)?;
        }
        if !is_done {
            return Err("the stream ends without [DONE]".to_owned());
        }
        if reply.finish.is_empty() { Err("the stream has no finish_reason".to_owned()) } else { Ok(reply) }
    }

    fn add(&mut self, chunk: &Value) -> Result<(), String> {
        if let Some(prompt) = chunk["usage"]["prompt_tokens"].as_u64() {
            self.prompt_tokens = usize::try_from(prompt).unwrap_or(usize::MAX);
        }
        let choice = &chunk["choices"][0];
        self.text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        for piece in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = piece["index"].as_u64().and_then(|index| usize::try_from(index).ok());
            let index = index.ok_or("a call without an index")?;
            if index > self.calls.len() {
                return Err(format!("call {index} comes before call {}", self.calls.len()));
            }
            if index == self.calls.len() {
                self.calls.push(Call::default());
            }
            let Some(call) = self.calls.get_mut(index) else { continue };
            call.id.push_str(piece["id"].as_str().unwrap_or_default());
            call.name.push_str(piece["function"]["name"].as_str().unwrap_or_default());
            call.arguments.push_str(piece["function"]["arguments"].as_str().unwrap_or_default());
        }
        if let Some(finish) = choice["finish_reason"].as_str() {
            if !self.finish.is_empty() {
                return Err("two finish_reasons".to_owned());
            }
            finish.clone_into(&mut self.finish);
        }
        Ok(())
    }
}

fn opening(text: &str) -> Vec<Value> {
    vec![json!({"role": "system", "content": SYSTEM}), json!({"role": "user", "content": text})]
}

fn call_json(call: &Call) -> Value {
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_one_call() {
        let raw = concat!(
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",",
            "\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7}}\n\ndata: [DONE]\n\n",
        );
        let call = Call { id: "a".to_owned(), name: "f".to_owned(), arguments: "{}".to_owned() };
        let expected =
            Reply { text: String::new(), calls: vec![call], finish: "tool_calls".to_owned(), prompt_tokens: 7 };
        assert_eq!(Reply::read(raw.as_bytes()), Ok(expected));
    }

    #[test]
    fn a_spliced_stream_with_a_seam_is_refused() {
        let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
        let done = "data: [DONE]\n\n";
        let gap = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"a\"}]}}]}\n\n";
        for bad in [
            finish.to_owned(),
            done.to_owned(),
            format!("{finish}{finish}{done}"),
            format!("{finish}{done}{done}"),
            format!("{gap}{finish}{done}"),
        ] {
            assert!(Reply::read(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(Reply::read(format!("{finish}{done}").as_bytes()).is_ok());
    }
}
