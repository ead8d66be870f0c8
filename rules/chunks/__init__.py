"""The work itself, in pieces that count once: segments of points, and replays over them.

The modules need the numeric libraries, which the web process loads on first use only: import them where they are used.
"""
