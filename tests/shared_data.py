"""Where the recorded data beside the checkout lies, and the mark for tests that need it."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the recorded data is missing: no folder 'shared' beside the checkout"
)
