"""Recorded results of the original: parsing, conversion, file names, which wrapper."""

import pytest

from tests.golden.wrappers import tallies
from tests.shared_data import SHARED, needs_shared

GOLDEN = SHARED / "peers" / "node-llama-cpp" / "golden"


@needs_shared
@pytest.mark.parametrize(
    "file", ["parse-text", "parse-stream", "openai-format", "model-file-names", "resolve-chat-wrapper"]
)
def test_all_counted_cases_agree(file: str) -> None:
    counted = [tally for tally in tallies(GOLDEN, file) if not tally.jinja]
    assert sum(tally.passed for tally in counted) > 0
    assert [failure for tally in counted for failure in tally.failures] == []
