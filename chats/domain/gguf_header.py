"""The metadata of a GGUF file, read with the gguf package but from its header only and within bounds.

The package's own reader goes on to the tensors, takes every count in the file at its word, and makes two arrays for
each of some 150,000 tokens. Here a file may be of any size, cut off anywhere, and made by an enemy. Importing this
module loads gguf and numpy, so `chat_templates.files` does it when a file is there.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gguf.constants import GGUFValueType, Keys
from gguf.gguf_reader import GGUFReader, ReaderField

MAX_FIELDS = 10_000
# The largest vocabularies have some 260,000 tokens, and up to twice as many merges.
MAX_ITEMS = 4_000_000
MAX_NESTING = 4
MAX_STRING_BYTES = 16 * 1024 * 1024

TEMPLATE = Keys.Tokenizer.CHAT_TEMPLATE
TOKENS = Keys.Tokenizer.LIST
TOKEN_IDS: Mapping[str, tuple[str, ...]] = {
    "bos_token": (Keys.Tokenizer.BOS_ID,),
    "eos_token": (Keys.Tokenizer.EOS_ID,),
    "unk_token": (Keys.Tokenizer.UNK_ID,),
    # The format itself has the misspelt one.
    "sep_token": (Keys.Tokenizer.SEP_ID, "tokenizer.ggml.separator_token_id"),
    "pad_token": (Keys.Tokenizer.PAD_ID,),
    "cls_token": ("tokenizer.ggml.cls_token_id",),
    "mask_token": (Keys.Tokenizer.MASK_ID,),
}


class DamagedHeader(Exception):
    """`code` says what is wrong: "truncated", "too_large" or "damaged"; `at` is the place in the file, in bytes."""

    def __init__(self, code: str, at: int) -> None:
        super().__init__(code)
        self.code = code
        self.at = at


class HeaderReader(GGUFReader):
    """The package's reader, stopped before the tensors and kept from believing the file."""

    # Where each token's length stands; set while the fields are read.
    token_places: list[int]

    def __init__(self, path: Path) -> None:
        self.token_places = []
        self._items = 0
        self._depth = 0
        super().__init__(path)

    def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
        if offset + np.dtype(dtype).itemsize * int(count) > len(self.data):
            raise DamagedHeader("truncated", offset)
        return super()._get(offset, dtype, count, override_order)

    def _get_str(self, offset: int) -> Any:
        if int(self._get(offset, np.uint64)[0]) > MAX_STRING_BYTES:
            raise DamagedHeader("too_large", offset)
        return super()._get_str(offset)

    def _build_fields(self, offs: int, count: int) -> int:
        if int(count) > MAX_FIELDS:
            raise DamagedHeader("too_large", offs)
        return super()._build_fields(offs, count)

    def _build_tensor_info(self, offs: int, count: int) -> tuple[int, list[ReaderField]]:
        return offs, []

    def _build_tensors(self, start_offs: int, fields: list[ReaderField]) -> None:
        return

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> tuple[int, list[Any], list[int], list[GGUFValueType]]:
        if raw_type != GGUFValueType.ARRAY:
            return super()._get_field_parts(orig_offs, raw_type)
        item_type = GGUFValueType(int(self._get(orig_offs, np.uint32)[0]))
        count = int(self._get(orig_offs + 4, np.uint64)[0])
        start = orig_offs + 12
        end = self._end_of_items(start, item_type, count)
        # The items are not kept: only the tokens are wanted, and those by their place.
        return end - orig_offs, [np.empty(0, np.uint8)], [0], [GGUFValueType.ARRAY, item_type]

    def _end_of_items(self, start: int, item_type: GGUFValueType, count: int) -> int:
        scalar = self.gguf_scalar_to_np.get(item_type)
        if scalar is not None:
            return start + int(self._get(start, scalar, count).nbytes)
        self._items += count
        if self._items > MAX_ITEMS:
            raise DamagedHeader("too_large", start)
        if item_type == GGUFValueType.STRING:
            places = self._places_of_strings(start, count)
            # Fields come in the order of the file, and this one's name has just been read.
            self._last_places = places
            return places[-1]
        if self._depth >= MAX_NESTING:
            raise DamagedHeader("too_large", start)
        self._depth += 1
        at = start
        for _ in range(count):
            at += self._get_field_parts(at, item_type)[0]
        self._depth -= 1
        return at

    _last_places: list[int]

    def _push_field(self, field: ReaderField, skip_sum: bool = False) -> int:
        if field.name == TOKENS and field.types == [GGUFValueType.ARRAY, GGUFValueType.STRING]:
            self.token_places = self._last_places[:-1]
        return super()._push_field(field, skip_sum)

    def _places_of_strings(self, start: int, count: int) -> list[int]:
        """Where the strings start, and after them where the last one ends."""
        length = struct.Struct(">Q" if self._is_big_endian() else "<Q")
        data, size = self.data.data, len(self.data)
        places = []
        at = start
        for _ in range(count):
            places.append(at)
            if at + 8 > size:
                raise DamagedHeader("truncated", at)
            at += 8 + length.unpack_from(data, at)[0]
        if at > size:
            raise DamagedHeader("truncated", size)
        return [*places, at]

    def _is_big_endian(self) -> bool:
        return (self.byte_order == "S") == (sys.byteorder == "little")

    def string(self, key: str) -> bytes | None:
        """The bytes of a text field; None if there is no such field or it is no text."""
        field = self.get_field(key)
        if field is None or field.types != [GGUFValueType.STRING]:
            return None
        return bytes(field.parts[-1])

    def number(self, key: str) -> int | None:
        field = self.get_field(key)
        if field is None or len(field.types) != 1 or field.types[0] == GGUFValueType.STRING:
            return None
        return int(field.parts[-1][0])

    def token(self, number: int) -> bytes | None:
        """The bytes of a token; None for a number outside the vocabulary."""
        if not 0 <= number < len(self.token_places):
            return None
        return bytes(self._get_str(self.token_places[number])[1])


def read_header(path: Path) -> HeaderReader:
    """The metadata of a file. Raises DamagedHeader for anything that is no whole GGUF header."""
    try:
        return HeaderReader(path)
    except DamagedHeader:
        raise
    except (ValueError, KeyError, IndexError, OverflowError, RecursionError, struct.error) as error:
        # An empty file, another version, an unknown type, the same key twice, a name that isn't UTF-8.
        raise DamagedHeader("damaged", 0) from error
