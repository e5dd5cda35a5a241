// @google/genai through Packlight: a turn that needs find_tools, its result, a second turn.
//
// Run by tests/sdk.rs, which scripts the provider. Environment: BASE_URL, MODEL, TOOLS (JSON).
// The chat helper keeps the history; it drops a turn whole when one of its chunks is not valid.

import assert from "node:assert/strict";
import { GoogleGenAI } from "@google/genai";

const { BASE_URL, MODEL } = process.env;
const ai = new GoogleGenAI({ apiKey: "test", httpOptions: { baseUrl: BASE_URL } });
const config = {
  systemInstruction: "You are helpful.",
  tools: [{ functionDeclarations: JSON.parse(process.env.TOOLS) }],
};

// One message without a stream: text, calls, usage.
async function whole(chat, message) {
  const reply = await chat.sendMessage({ message });
  const { parts } = reply.candidates[0].content;
  return {
    text: parts.filter((p) => p.text && !p.thought).map((p) => p.text).join(""),
    calls: parts.filter((p) => p.functionCall).map((p) => p.functionCall),
    usage: reply.usageMetadata,
  };
}

// The same as a stream.
async function streamed(chat, message) {
  const reply = { text: "", calls: [], usage: undefined };
  const ids = new Set();
  const ends = [];
  for await (const chunk of await chat.sendMessageStream({ message })) {
    ids.add(chunk.responseId);
    reply.usage = chunk.usageMetadata ?? reply.usage;
    const [candidate] = chunk.candidates;
    assert.ok(candidate.content?.parts?.length, "a chunk without parts");
    for (const part of candidate.content.parts) {
      if (part.text && !part.thought) reply.text += part.text;
      if (part.functionCall) reply.calls.push(part.functionCall);
    }
    if (candidate.finishReason) ends.push(candidate.finishReason);
  }
  assert.equal(ids.size, 1, "one reply has one identity");
  assert.deepEqual(ends, ["STOP"]);
  return reply;
}

async function converse(ask) {
  const chat = ai.chats.create({ model: MODEL, config });
  const step = async (message, { legs, call, text }) => {
    const reply = await ask(chat, message);
    assert.deepEqual(reply.calls.map((c) => c.name), call ? [call] : []);
    if (text) assert.equal(reply.text, text);
    assert.equal(reply.usage.promptTokenCount, 1000 * legs);
    assert.equal(reply.usage.candidatesTokenCount, 20 * legs);
    assert.equal(reply.usage.totalTokenCount, 1020 * legs);
    return reply.calls.map(({ id, name, args }) => {
      assert.deepEqual(args, { value: "größe" });
      return { functionResponse: { id, name, response: { output: "it is done" } } };
    });
  };
  let answer = await step("Weather report: temperature, rain forecast. want=17", {
    legs: 2,
    call: "lock_door",
    text: "Let me look. Found.",
  });
  await step(answer, { legs: 1, text: "Finished." });
  answer = await step("Alarm, wakes somebody at clock time. want=8", { legs: 1, call: "set_alarm" });
  await step(answer, { legs: 1, text: "Finished." });
  assert.equal(chat.getHistory(true).length, chat.getHistory().length, "the SDK dropped a turn as invalid");
  assert.ok(!JSON.stringify(chat.getHistory()).includes("find_tools"), "find_tools reached the history");
}

await converse(whole);
await converse(streamed);
console.log("2 conversations passed");
