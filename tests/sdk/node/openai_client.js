// openai-node through Packlight: a turn that needs find_tools, its result, a second turn.
//
// Run by tests/sdk.rs, which scripts the provider. Environment: BASE_URL, MODEL, TOOLS (JSON),
// STYLE (`kimi` or `compat`: Gemini's compatible endpoint, whose streams have no index and say `stop`).

import assert from "node:assert/strict";
import OpenAI from "openai";

const { BASE_URL, MODEL, STYLE } = process.env;
const tools = JSON.parse(process.env.TOOLS);
const client = new OpenAI({ baseURL: BASE_URL, apiKey: "sk-test", maxRetries: 0 });

// One request without a stream: message, finish reason, usage.
async function whole(messages) {
  const completion = await client.chat.completions.create({ model: MODEL, messages, tools });
  const [choice] = completion.choices;
  return { message: choice.message, finish: choice.finish_reason, usage: completion.usage };
}

// The same by the SDK's own accumulator.
async function helper(messages) {
  const stream = client.chat.completions.stream({
    model: MODEL,
    messages,
    tools,
    stream_options: { include_usage: true },
  });
  const completion = await stream.finalChatCompletion();
  const [choice] = completion.choices;
  return { message: choice.message, finish: choice.finish_reason, usage: completion.usage };
}

// The same read chunk by chunk, as one must where a call has no index.
async function chunks(messages) {
  const message = { role: "assistant" };
  const calls = new Map();
  const ids = new Set();
  const finishes = [];
  const usages = [];
  const stream = await client.chat.completions.create({
    model: MODEL,
    messages,
    tools,
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const chunk of stream) {
    ids.add(`${chunk.id} ${chunk.created}`);
    if (chunk.usage) usages.push(chunk.usage);
    for (const { delta, finish_reason } of chunk.choices) {
      if (delta.content) message.content = (message.content ?? "") + delta.content;
      for (const part of delta.tool_calls ?? []) {
        const key = part.index ?? part.id;
        const call = calls.get(key) ?? { type: "function", function: { name: "", arguments: "" } };
        calls.set(key, call);
        if (part.id) call.id = part.id;
        if (part.extra_content) call.extra_content = part.extra_content;
        call.function.name += part.function.name ?? "";
        call.function.arguments += part.function.arguments ?? "";
      }
      if (finish_reason) finishes.push(finish_reason);
    }
  }
  assert.equal(ids.size, 1, "one reply has one identity");
  assert.equal(finishes.length, 1, "one finish reason");
  assert.equal(usages.length, 1, "usage once");
  if (calls.size) message.tool_calls = [...calls.values()];
  return { message, finish: finishes[0], usage: usages[0] };
}

// Two turns. `stop`: the finish reason of a reply that calls.
async function converse(ask, stop) {
  const messages = [
    { role: "system", content: "You are helpful." },
    { role: "user", content: "Weather report: temperature, rain forecast. want=17" },
  ];
  const step = async ({ legs, call, text, finish = "stop" }) => {
    const reply = await ask(messages);
    const calls = reply.message.tool_calls ?? [];
    assert.deepEqual(calls.map((c) => c.function.name), call ? [call] : []);
    assert.equal(reply.finish, finish);
    if (text) assert.equal(reply.message.content, text);
    assert.equal(reply.usage.prompt_tokens, 1000 * legs);
    assert.equal(reply.usage.completion_tokens, 20 * legs);
    messages.push(reply.message);
    for (const made of calls) {
      assert.deepEqual(JSON.parse(made.function.arguments), { value: "größe" });
      messages.push({ role: "tool", tool_call_id: made.id, content: "it is done" });
    }
  };
  await step({ legs: 2, call: "lock_door", text: "Let me look. Found.", finish: stop });
  await step({ legs: 1, text: "Finished." });
  messages.push({ role: "user", content: "Alarm, wakes somebody at clock time. want=8" });
  await step({ legs: 1, call: "set_alarm", finish: stop });
  await step({ legs: 1, text: "Finished." });
}

await converse(whole, "tool_calls");
await converse(chunks, STYLE === "compat" ? "stop" : "tool_calls");
if (STYLE === "kimi") await converse(helper, "tool_calls");
console.log("conversations passed");
