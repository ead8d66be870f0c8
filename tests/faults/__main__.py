"""`python -m tests.faults [--short] [sqlite] [postgres]`: replays under faults, a process for each database.

Prints kills, chunks, lost and doubled for each; exit status 0 only when nothing was lost or doubled.
"""

import os
import subprocess
import sys

from tests import postgres_server
from tests.faults.postgres import stop

DATABASES = ("sqlite", "postgres")


def main(argv: list[str]) -> int:
    short = [word for word in argv if word == "--short"]
    wanted = [word for word in argv if word in DATABASES] or list(DATABASES)
    if len(short) + len(set(wanted) & set(argv)) != len(argv):
        print(__doc__, file=sys.stderr)
        return 2
    return max(one(database, short) for database in wanted)


def one(database: str, options: list[str]) -> int:
    command = [sys.executable, "-c", "import sys; from tests.faults.replays import run; sys.exit(run(sys.argv[1:]))"]
    if database == "sqlite":
        return subprocess.run([*command, database, *options]).returncode
    try:
        with postgres_server.running() as url:
            done = subprocess.run([*command, database, *options], env={**os.environ, "DATABASE_URL": url})
            stop(url)
            return done.returncode
    except postgres_server.NoPostgres as error:
        print(f"postgres: skipped, {error}")
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
