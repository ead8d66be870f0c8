"""The formats in the order in which they are tried (import-formats.md section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from chats.domain.formats import (
    anthropic_messages,
    atif,
    chatgpt_export,
    claude_ai_export,
    claude_code,
    codex_rollout,
    eleanor_chat,
    gemini_contents,
    gemini_files,
    inspect_log,
    langchain,
    langfuse,
    langsmith,
    local_models,
    message_rows,
    mini_swe_agent,
    open_webui,
    openai_chat,
    openai_responses,
    openhands,
    otel_genai,
    other_exports,
    sharegpt,
    sillytavern,
    swe_agent,
    tau2_bench,
    tau_bench,
    vercel_ui,
)
from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Reading
from chats.domain.formats.reading_rows import TYPE_ERRORS, Item

Need = Literal["A", "B", "C"]
Recognise = Callable[[Head], float]
Read = Callable[[Document, Reading], Iterator[Item]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format: `recognise` gives the share of the first records that fit, `read` gives chats and problems."""

    id: str
    label: str
    need: Need
    recognise: Recognise
    read: Read


_FINETUNE = message_rows.reader(message_rows.FINETUNE)
_HF = message_rows.reader(message_rows.HF)

FORMATS: Final[tuple[Format, ...]] = (
    Format("openai-chat", "OpenAI chat messages", "A", openai_chat.recognise, openai_chat.read),
    Format("openai-finetune", "OpenAI fine-tuning rows", "A", message_rows.recognise_finetune, _FINETUNE),
    Format("hf-messages", "Hugging Face messages", "A", message_rows.recognise_hf, _HF),
    Format("anthropic-messages", "Anthropic Messages", "A", anthropic_messages.recognise, anthropic_messages.read),
    Format("claude-code", "Claude Code session", "A", claude_code.recognise, claude_code.read),
    Format("codex-rollout", "Codex rollout", "A", codex_rollout.recognise, codex_rollout.read),
    Format("langchain", "LangChain messages, LangGraph state", "A", langchain.recognise, langchain.read),
    Format("otel-genai", "OpenTelemetry GenAI spans", "A", otel_genai.recognise, otel_genai.read),
    Format("langfuse", "Langfuse trace", "A", langfuse.recognise, langfuse.read),
    Format("sharegpt", "ShareGPT", "A", sharegpt.recognise_sharegpt, sharegpt.read_sharegpt),
    Format("sillytavern", "SillyTavern chat", "A", sillytavern.recognise, sillytavern.read),
    Format("openai-responses", "OpenAI Responses items", "B", openai_responses.recognise, openai_responses.read),
    Format("gemini-contents", "Gemini contents", "B", gemini_contents.recognise, gemini_contents.read),
    Format("vercel-ui-messages", "Vercel AI SDK UI messages", "B", vercel_ui.recognise, vercel_ui.read),
    Format("chatgpt-export", "ChatGPT data export", "B", chatgpt_export.recognise, chatgpt_export.read),
    Format("claude-ai-export", "Claude.ai export", "B", claude_ai_export.recognise, claude_ai_export.read),
    Format("open-webui", "Open WebUI export", "B", open_webui.recognise, open_webui.read),
    Format("tau-bench", "tau-bench results", "B", tau_bench.recognise, tau_bench.read),
    Format("tau2-bench", "tau2-bench results", "B", tau2_bench.recognise, tau2_bench.read),
    Format("swe-agent", "SWE-agent trajectory", "B", swe_agent.recognise, swe_agent.read),
    Format("openhands", "OpenHands events", "B", openhands.recognise, openhands.read),
    Format("inspect", "Inspect log", "B", inspect_log.recognise, inspect_log.read),
    Format("langsmith", "LangSmith runs", "B", langsmith.recognise, langsmith.read),
    Format("eleanor-chat", "Eleanor chat", "B", eleanor_chat.recognise, eleanor_chat.read),
    Format("ollama", "Ollama API", "C", local_models.recognise_ollama, local_models.read_ollama),
    Format("lmstudio", "LM Studio conversation", "C", local_models.recognise_lmstudio, local_models.read_lmstudio),
    Format("gemini-cli", "Gemini CLI session", "C", gemini_files.recognise_cli, gemini_files.read_cli),
    Format("aistudio", "Google AI Studio prompt", "C", gemini_files.recognise_studio, gemini_files.read_studio),
    Format("alpaca", "Alpaca", "C", sharegpt.recognise_alpaca, sharegpt.read_alpaca),
    Format("mini-swe-agent", "mini-swe-agent trajectory", "C", mini_swe_agent.recognise, mini_swe_agent.read),
    Format("atif", "ATIF trajectory", "C", atif.recognise, atif.read),
    Format("invariant", "Invariant traces", "C", other_exports.recognise_invariant, other_exports.read_invariant),
    Format("grok-export", "Grok export", "C", other_exports.recognise_grok, other_exports.read_grok),
)
BY_ID: Final = {f.id: f for f in FORMATS}


def recognised(head: Head) -> Format | None:
    """The first format that more than half of the first records fit."""
    return next((f for f in FORMATS if _share(f, head) > 0.5), None)


def _share(known: Format, head: Head) -> float:
    """A value of an unexpected type means that the records are of another format."""
    try:
        return known.recognise(head)
    except TYPE_ERRORS:
        return 0.0
