"""google-genai through Packlight: a turn that needs find_tools, its result, a second turn.

Run by tests/sdk.rs, which scripts the provider. Environment: BASE_URL, MODEL, TOOLS (JSON).
The chat helper keeps the history; it drops a turn whole when one of its chunks is not valid.
"""

import json
import os

from google import genai
from google.genai import types

client = genai.Client(api_key="test", http_options=types.HttpOptions(base_url=os.environ["BASE_URL"]))
CONFIG = types.GenerateContentConfig(
    system_instruction="You are helpful.",
    tools=[types.Tool(function_declarations=json.loads(os.environ["TOOLS"]))],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)


def whole(chat, message):
    """One message without a stream: text, calls, last usage."""
    reply = chat.send_message(message)
    parts = reply.candidates[0].content.parts
    text = "".join(p.text for p in parts if p.text and not p.thought)
    return text, [p.function_call for p in parts if p.function_call], reply.usage_metadata


def streamed(chat, message):
    """The same as a stream."""
    text, calls, usage, ids, ends = "", [], None, set(), []
    for chunk in chat.send_message_stream(message):
        ids.add(chunk.response_id)
        usage = chunk.usage_metadata or usage
        candidate = chunk.candidates[0]
        assert candidate.content and candidate.content.parts, f"a chunk without parts: {chunk}"
        for part in candidate.content.parts:
            text += part.text if part.text and not part.thought else ""
            calls += [part.function_call] if part.function_call else []
        ends += [candidate.finish_reason] if candidate.finish_reason else []
    assert len(ids) == 1, f"one reply has one identity: {ids}"
    assert ends == [types.FinishReason.STOP], ends
    return text, calls, usage


def converse(ask):
    chat = client.chats.create(model=os.environ["MODEL"], config=CONFIG)

    def step(message, legs, call=None, text=None):
        said, calls, usage = ask(chat, message)
        assert [c.name for c in calls] == ([call] if call else []), calls
        if text:
            assert said == text, said
        assert usage.prompt_token_count == 1000 * legs, usage
        assert usage.candidates_token_count == 20 * legs, usage
        assert usage.total_token_count == 1020 * legs, usage
        for made in calls:
            assert made.args == {"value": "größe"}, made
            response = types.FunctionResponse(id=made.id, name=made.name, response={"output": "it is done"})
            return [types.Part(function_response=response)]
        return None

    answer = step("Weather report: temperature, rain forecast. want=17", 2, "lock_door", "Let me look. Found.")
    step(answer, 1, text="Finished.")
    answer = step("Alarm, wakes somebody at clock time. want=8", 1, "set_alarm")
    step(answer, 1, text="Finished.")
    curated = chat.get_history(curated=True)
    assert len(curated) == len(chat.get_history()), "the SDK dropped a turn as invalid"
    assert "find_tools" not in str(curated), "find_tools reached the history"


converse(whole)
converse(streamed)
print("2 conversations passed")
