"""`python -m tests.bench NAME [--json]`: measure, as ratios within one run."""

import sys

from tests.command_line import dispatch

if __name__ == "__main__":
    sys.exit(dispatch("tests.bench", sys.argv[1:]))
