"""The formats in the order in which they are tried (import-formats.md section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from chats.domain.formats import (
    anthropic_messages,
    claude_code,
    codex_rollout,
    eleanor_chat,
    gemini_contents,
    langchain,
    langfuse,
    langsmith,
    message_rows,
    openai_chat,
    openai_responses,
    otel_genai,
    swe_agent,
    tau_bench,
)
from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Reading
from chats.domain.formats.reading_rows import Item


@dataclass(frozen=True, slots=True)
class Format:
    """A format: `recognise` gives the share of the first records that fit, `read` gives chats and problems."""

    id: str
    label: str
    need: Literal["A", "B", "C"]
    recognise: Callable[[Head], float]
    read: Callable[[Document, Reading], Iterator[Item]]


FORMATS: Final[tuple[Format, ...]] = (
    Format("openai-chat", "OpenAI chat messages", "A", openai_chat.recognise, openai_chat.read),
    Format(
        "openai-finetune",
        "OpenAI fine-tuning rows",
        "A",
        message_rows.recognise_finetune,
        message_rows.reader(message_rows.FINETUNE),
    ),
    Format("hf-messages", "Hugging Face messages", "A", message_rows.recognise_hf, message_rows.reader(message_rows.HF)),
    Format("anthropic-messages", "Anthropic Messages", "A", anthropic_messages.recognise, anthropic_messages.read),
    Format("claude-code", "Claude Code session", "A", claude_code.recognise, claude_code.read),
    Format("codex-rollout", "Codex rollout", "A", codex_rollout.recognise, codex_rollout.read),
    Format("langchain", "LangChain messages, LangGraph state", "A", langchain.recognise, langchain.read),
    Format("otel-genai", "OpenTelemetry GenAI spans", "A", otel_genai.recognise, otel_genai.read),
    Format("langfuse", "Langfuse trace", "A", langfuse.recognise, langfuse.read),
    Format("openai-responses", "OpenAI Responses items", "B", openai_responses.recognise, openai_responses.read),
    Format("gemini-contents", "Gemini contents", "B", gemini_contents.recognise, gemini_contents.read),
    Format("tau-bench", "tau-bench results", "B", tau_bench.recognise, tau_bench.read),
    Format("swe-agent", "SWE-agent trajectory", "B", swe_agent.recognise, swe_agent.read),
    Format("langsmith", "LangSmith runs", "B", langsmith.recognise, langsmith.read),
    Format("eleanor-chat", "Eleanor chat", "B", eleanor_chat.recognise, eleanor_chat.read),
)
BY_ID: Final = {f.id: f for f in FORMATS}


def recognised(head: Head) -> Format | None:
    """The first format that more than half of the first records fit."""
    return next((f for f in FORMATS if f.recognise(head) > 0.5), None)
