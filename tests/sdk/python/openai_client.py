"""openai-python through Packlight: a turn that needs find_tools, its result, a second turn.

Run by tests/sdk.rs, which scripts the provider. Environment: BASE_URL, MODEL, TOOLS (JSON),
STYLE (`kimi` or `compat`: Gemini's compatible endpoint, whose streams have no index and say `stop`).
"""

import json
import os

from openai import OpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState

STYLE = os.environ["STYLE"]
MODEL = os.environ["MODEL"]
TOOLS = json.loads(os.environ["TOOLS"])
client = OpenAI(base_url=os.environ["BASE_URL"], api_key="sk-test", max_retries=0)


def whole(messages):
    """One request without a stream: message, finish reason, usage."""
    completion = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
    choice = completion.choices[0]
    return choice.message.model_dump(exclude_none=True), choice.finish_reason, completion.usage


def streamed(messages):
    """The same as a stream, put together by the SDK's own accumulator where it can."""
    state = ChatCompletionStreamState()
    message = {"role": "assistant"}
    calls, ids, finishes, usages = {}, set(), [], []
    for chunk in client.chat.completions.create(
        model=MODEL, messages=messages, tools=TOOLS, stream=True, stream_options={"include_usage": True}
    ):
        ids.add((chunk.id, chunk.created))
        if STYLE == "kimi":
            state.handle_chunk(chunk)
        if chunk.usage:
            usages.append(chunk.usage)
        for choice in chunk.choices:
            delta = choice.delta.model_dump(exclude_none=True)
            for key in ("content", "reasoning_content"):
                if key in delta:
                    message[key] = message.get(key, "") + delta[key]
            for part in delta.get("tool_calls", []):
                # Without an index only the id says which call a piece belongs to.
                key = part.get("index", part.get("id"))
                call = calls.setdefault(key, {"type": "function", "function": {"name": "", "arguments": ""}})
                call.update({k: v for k, v in part.items() if k in ("id", "extra_content")})
                call["function"]["name"] += part["function"].get("name", "")
                call["function"]["arguments"] += part["function"].get("arguments", "")
            if choice.finish_reason:
                finishes.append(choice.finish_reason)
    assert len(ids) == 1, f"one reply has one identity: {ids}"
    assert len(finishes) == 1, f"one finish reason: {finishes}"
    assert len(usages) == 1, f"usage once: {usages}"
    if calls:
        message["tool_calls"] = list(calls.values())
    if STYLE == "kimi":
        final = state.get_final_completion().choices[0].message
        assert (final.content or None) == (message.get("content") or None), final
        made = [(c.id, c.function.name, c.function.arguments) for c in final.tool_calls or []]
        read = [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls.values()]
        assert made == read, f"the accumulator disagrees: {made} {read}"
    return message, finishes[0], usages[0]


def converse(ask, stop):
    """Two turns. `stop`: the finish reason of a reply that calls."""
    messages = [
        {"role": "system", "content": "You are helpful."},
        {"role": "user", "content": "Weather report: temperature, rain forecast. want=17"},
    ]

    def step(legs, call=None, text=None, finish="stop"):
        message, reason, usage = ask(messages)
        calls = message.get("tool_calls", [])
        assert [c["function"]["name"] for c in calls] == ([call] if call else []), message
        assert reason == finish, reason
        if text:
            assert message["content"] == text, message
        assert usage.prompt_tokens == 1000 * legs, usage
        assert usage.completion_tokens == 20 * legs, usage
        messages.append(message)
        for made in calls:
            assert json.loads(made["function"]["arguments"]) == {"value": "größe"}, made
            messages.append({"role": "tool", "tool_call_id": made["id"], "content": "it is done"})

    step(2, call="lock_door", text="Let me look. Found.", finish=stop)
    step(1, text="Finished.")
    messages.append({"role": "user", "content": "Alarm, wakes somebody at clock time. want=8"})
    step(1, call="set_alarm", finish=stop)
    step(1, text="Finished.")


converse(whole, "tool_calls")
converse(streamed, "stop" if STYLE == "compat" else "tool_calls")
print("2 conversations passed")
