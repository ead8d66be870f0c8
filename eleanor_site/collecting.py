"""Garbage collection in a process that serves requests."""

import gc


def keep_what_is_loaded() -> None:
    """Leave out of full collections what lives as long as the process, and make those rarer.

    Walking everything that was loaded at start was most of the slowest twentieth of the previews.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
