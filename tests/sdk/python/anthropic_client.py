"""anthropic for Python through Packlight: a turn that needs find_tools, its result, a second turn, thinking on.

Run by tests/sdk.rs, which scripts the provider. Environment: BASE_URL, MODEL, TOOLS (JSON).
"""

import json
import os

from anthropic import Anthropic

TOOLS = json.loads(os.environ["TOOLS"])
client = Anthropic(base_url=os.environ["BASE_URL"], api_key="sk-test", max_retries=0)


def request(messages):
    return {
        "model": os.environ["MODEL"],
        "max_tokens": 4000,
        "system": "You are helpful.",
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "messages": messages,
        "tools": TOOLS,
    }


def whole(messages):
    """One request without a stream."""
    return client.messages.create(**request(messages))


def streamed(messages):
    """The same as a stream, put together by the SDK's own accumulator."""
    starts, stops, indices = 0, 0, []
    with client.messages.stream(**request(messages)) as stream:
        for event in stream:
            starts += event.type == "message_start"
            stops += event.type == "message_stop"
            if event.type == "content_block_start":
                indices.append(event.index)
        message = stream.get_final_message()
    assert (starts, stops) == (1, 1), (starts, stops)
    assert indices == list(range(len(message.content))), indices
    return message


def converse(ask):
    messages = [{"role": "user", "content": "Weather report: temperature, rain forecast. want=17"}]

    def step(legs, call=None, text=None):
        message = ask(messages)
        calls = [block for block in message.content if block.type == "tool_use"]
        assert [c.name for c in calls] == ([call] if call else []), message
        assert message.stop_reason == ("tool_use" if call else "end_turn"), message
        thoughts = [block for block in message.content if block.type == "thinking"]
        assert len(thoughts) == legs and all(block.signature for block in thoughts), message
        if text:
            assert "".join(block.text for block in message.content if block.type == "text") == text, message
        usage = message.usage
        taken = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
        assert (taken, usage.cache_read_input_tokens) == (1000 * legs, 400 * legs), usage
        assert usage.output_tokens == 20 * legs, usage
        messages.append({"role": "assistant", "content": message.content})
        for made in calls:
            assert made.input == {"value": "größe"}, made
            result = {"type": "tool_result", "tool_use_id": made.id, "content": "it is done"}
            messages.append({"role": "user", "content": [result]})

    step(2, call="lock_door", text="Let me look. Found.")
    step(1, text="Finished.")
    messages.append({"role": "user", "content": "Alarm, wakes somebody at clock time. want=8"})
    step(1, call="set_alarm")
    step(1, text="Finished.")


converse(whole)
converse(streamed)
print("2 conversations passed")
