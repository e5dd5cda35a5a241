// @anthropic-ai/sdk through Packlight: a turn that needs find_tools, its result, a second turn, thinking on.
//
// Run by tests/sdk.rs, which scripts the provider. Environment: BASE_URL, MODEL, TOOLS (JSON).

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";

const { BASE_URL, MODEL } = process.env;
const tools = JSON.parse(process.env.TOOLS);
const client = new Anthropic({ baseURL: BASE_URL, apiKey: "sk-test", maxRetries: 0 });

const request = (messages) => ({
  model: MODEL,
  max_tokens: 4000,
  system: [{ type: "text", text: "You are helpful.", cache_control: { type: "ephemeral" } }],
  thinking: { type: "enabled", budget_tokens: 2000 },
  messages,
  tools,
});

// One request without a stream.
const whole = (messages) => client.messages.create(request(messages));

// The same as a stream, put together by the SDK's own accumulator.
async function streamed(messages) {
  const stream = client.messages.stream(request(messages));
  const kinds = [];
  const indices = [];
  stream.on("streamEvent", (event) => {
    kinds.push(event.type);
    if (event.type === "content_block_start") indices.push(event.index);
  });
  const message = await stream.finalMessage();
  for (const kind of ["message_start", "message_delta", "message_stop"]) {
    assert.equal(kinds.filter((k) => k === kind).length, 1, kind);
  }
  assert.deepEqual(indices, [...message.content.keys()]);
  return message;
}

async function converse(ask) {
  const messages = [{ role: "user", content: "Weather report: temperature, rain forecast. want=17" }];
  const step = async ({ legs, call, text }) => {
    const message = await ask(messages);
    const of = (type) => message.content.filter((block) => block.type === type);
    assert.deepEqual(of("tool_use").map((c) => c.name), call ? [call] : []);
    assert.equal(message.stop_reason, call ? "tool_use" : "end_turn");
    assert.equal(of("thinking").length, legs);
    assert.ok(of("thinking").every((block) => block.signature));
    if (text) assert.equal(of("text").map((block) => block.text).join(""), text);
    const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } = message.usage;
    assert.equal(input_tokens + cache_creation_input_tokens + cache_read_input_tokens, 1000 * legs);
    assert.equal(cache_read_input_tokens, 400 * legs);
    assert.equal(output_tokens, 20 * legs);
    messages.push({ role: "assistant", content: message.content });
    for (const { id, input } of of("tool_use")) {
      assert.deepEqual(input, { value: "größe" });
      messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "it is done" }] });
    }
  };
  await step({ legs: 2, call: "lock_door", text: "Let me look. Found." });
  await step({ legs: 1, text: "Finished." });
  messages.push({ role: "user", content: "Alarm, wakes somebody at clock time. want=8" });
  await step({ legs: 1, call: "set_alarm" });
  await step({ legs: 1, text: "Finished." });
}

await converse(whole);
await converse(streamed);
console.log("2 conversations passed");
