"""`python -m tests.golden NAME PATH`: compare with recorded results; exit 0 only when all agree."""

import sys

from tests.command_line import dispatch

if __name__ == "__main__":
    sys.exit(dispatch("tests.golden", sys.argv[1:]))
