"""What a model's file name says: name, sub type, size, quantization … (chat-wrappers.md section 13.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

# What llama.cpp and the makers of GGUF files write for quantizations.
_QUANTIZATION_NAMES = """
    Q1_0 Q2_0 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0
    Q2_K Q2_K_S Q3_K Q3_K_S Q3_K_M Q3_K_L Q4_K Q4_K_S Q4_K_M Q5_K Q5_K_S Q5_K_M Q6_K
    Q2_K_XL Q3_K_XL Q4_K_XL Q5_K_XL Q6_K_XL Q7_K_XL Q8_K_XL
    IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ2_M IQ3_XXS IQ3_XS IQ3_S IQ3_M IQ4_NL IQ4_XS TQ1_0 TQ2_0
    MXFP4 MXFP4_MOE NVFP4 F16 BF16 F32
"""
_QUANTIZATIONS = frozenset(_QUANTIZATION_NAMES.split())
_PARAMETERS = re.compile(r"[0-9]+[Bb]")
_CONTEXT_SIZE = re.compile(r"[0-9]+[kKmM]")
_VERSION_START = re.compile(r"[vV]?[0-9]")
_PART_NUMBER = re.compile(r"[0-9]{5}")


@dataclass(frozen=True)
class ModelFileName:
    """The parts of a file name; None where it doesn't say. `part` and `parts` number the files of a split model."""

    name: str | None
    sub_type: str
    quantization: str | None
    file_type: str
    version: str | None
    context_size: str | None
    parameters: str | None
    part: str | None
    parts: str | None
    other_info: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The recorded form: camelCase, what is absent has no key."""
        values = {
            "name": self.name,
            "subType": self.sub_type,
            "quantization": self.quantization,
            "fileType": self.file_type,
            "version": self.version,
            "contextSize": self.context_size,
            "parameters": self.parameters,
            "parts": None if self.part is None else {"part": self.part, "parts": self.parts},
            "otherInfo": list(self.other_info),
        }
        return {key: value for key, value in values.items() if value is not None}


def parse_model_file_name(file_name: str) -> ModelFileName:
    """Read a file name without its folder. Any text has an answer."""
    pieces = file_name.split("-")
    pieces, part, parts = _without_part_number(pieces)
    pieces, candidate, file_type = _without_file_type(pieces)
    quantization = candidate if candidate in _QUANTIZATIONS else _last_quantization(file_name)
    before, parameters, after = _split_at_parameters(pieces)
    context_size = version = None
    other: list[str] = []
    for piece in after:
        if _CONTEXT_SIZE.fullmatch(piece):
            context_size = piece.upper()
        elif _VERSION_START.match(piece):
            version = piece.lower()
        else:
            other.append(piece)
    return ModelFileName(
        name=before[0] if before else None,
        sub_type="-".join(before[1:]),
        quantization=quantization,
        file_type=file_type,
        version=version,
        context_size=context_size,
        parameters=parameters,
        part=part,
        parts=parts,
        other_info=tuple(other),
    )


def _without_part_number(pieces: list[str]) -> tuple[list[str], str | None, str | None]:
    """Take off `NNNNN-of-NNNNN`; what follows the second number stays as a piece of its own."""
    if len(pieces) < 3 or pieces[-2] != "of":
        return pieces, None, None
    part, count, rest = pieces[-3], pieces[-1][:5], pieces[-1][5:]
    if not _PART_NUMBER.fullmatch(part) or not _PART_NUMBER.fullmatch(count):
        return pieces, None, None
    return [*pieces[:-3], *([rest] if rest else [])], part, count


def _without_file_type(pieces: list[str]) -> tuple[list[str], str, str]:
    """Take the file type and the candidate for the quantization off the last piece."""
    if not pieces:
        return pieces, "", ""
    *pieces, last = pieces
    bits = last.split(".")
    file_type = bits.pop()
    candidate = bits.pop().upper() if bits else ""
    if bits:
        pieces.append(".".join(bits))
    if not candidate and pieces and pieces[-1].upper() in _QUANTIZATIONS:
        # A split model has the quantization in the piece before its number.
        candidate = pieces.pop().upper()
    return pieces, candidate, file_type


def _last_quantization(file_name: str) -> str | None:
    for piece in reversed(re.split(r"[-. ]", file_name)):
        if piece.upper() in _QUANTIZATIONS:
            return piece.upper()
    return None


def _split_at_parameters(pieces: list[str]) -> tuple[list[str], str | None, list[str]]:
    """What stands before the first parameter count, the count, and what follows it."""
    for index, piece in enumerate(pieces):
        size, *rest = piece.split(".")
        if _PARAMETERS.fullmatch(size):
            return pieces[:index], size.upper(), [*rest, *pieces[index + 1 :]]
    return pieces, None, []
