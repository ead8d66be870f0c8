"""The worked cases and the made-up corpus, where the recorded data is."""

import subprocess
import sys

import pytest

from tests.golden import continuation, corpus
from tests.shared_data import SHARED, needs_shared


@needs_shared
def test_every_worked_case_is_met(capsys):
    assert continuation.run([str(SHARED / "spec" / "continuation-examples.json")]) == 0, capsys.readouterr().out


@pytest.fixture(scope="module")
def made_up_corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    subprocess.run(
        [
            sys.executable,
            SHARED / "bench" / "make_corpus.py",
            "--conversations=200",
            "--seed=7",
            "--points",
            f"--out={folder}",
        ],
        check=True,
        capture_output=True,
    )
    return folder


@needs_shared
def test_every_point_of_the_corpus_is_as_its_maker_saw_it(made_up_corpus, capsys):
    status = corpus.run([str(made_up_corpus)])
    told = capsys.readouterr().out
    assert status == 0, told
    assert told.splitlines()[-1] == "4260 of 4260"
