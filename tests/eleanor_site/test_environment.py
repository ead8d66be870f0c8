"""Values from the environment are understood or refused with a sentence."""

import os
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.utils import load_backend

from eleanor_site import environment


@pytest.mark.parametrize("word", ["1", "true", "TRUE", "yes", "on", " on "])
def test_flag_true(monkeypatch, word):
    monkeypatch.setenv("SOME_FLAG", word)
    assert environment.flag("SOME_FLAG", False) is True


@pytest.mark.parametrize("word", ["0", "false", "No", "off"])
def test_flag_false(monkeypatch, word):
    monkeypatch.setenv("SOME_FLAG", word)
    assert environment.flag("SOME_FLAG", True) is False


@pytest.mark.parametrize("word", ["", "2", "y", "falsch", "None"])
def test_flag_refuses_what_it_does_not_know(monkeypatch, word):
    monkeypatch.setenv("SOME_FLAG", word)
    with pytest.raises(ImproperlyConfigured, match="SOME_FLAG must be 1 or 0"):
        environment.flag("SOME_FLAG", True)


def test_defaults_without_a_value(monkeypatch):
    for name in ("A_FLAG", "A_NUMBER", "A_TEXT", "SOME_WORDS"):
        monkeypatch.delenv(name, raising=False)
    assert environment.flag("A_FLAG", True) is True
    assert environment.number("A_NUMBER", 7) == 7
    assert environment.text("A_TEXT", "seven", choices=["six", "seven"]) == "seven"
    assert environment.words("SOME_WORDS", ("a", "b")) == ["a", "b"]


def test_number(monkeypatch):
    monkeypatch.setenv("A_NUMBER", " 12 ")
    assert environment.number("A_NUMBER", 7) == 12


@pytest.mark.parametrize("raw", ["", "1.5", "twelve", "1e3", "0x10", "-1"])
def test_number_refuses(monkeypatch, raw):
    monkeypatch.setenv("A_NUMBER", raw)
    with pytest.raises(ImproperlyConfigured, match="A_NUMBER must be"):
        environment.number("A_NUMBER", 7)


def test_text_of_given_choices(monkeypatch):
    monkeypatch.setenv("A_TEXT", " INFO ")
    assert environment.text("A_TEXT", "DEBUG", choices=["DEBUG", "INFO"]) == "INFO"
    monkeypatch.setenv("A_TEXT", "LOUD")
    with pytest.raises(ImproperlyConfigured, match="A_TEXT must be one of DEBUG, INFO, not 'LOUD'"):
        environment.text("A_TEXT", "DEBUG", choices=["DEBUG", "INFO"])


def test_words(monkeypatch):
    monkeypatch.setenv("SOME_WORDS", " a.example, ,b.example,")
    assert environment.words("SOME_WORDS", []) == ["a.example", "b.example"]


def test_secret_is_made_once_and_readable_by_its_owner_only(monkeypatch, tmp_path):
    monkeypatch.delenv("SECRET_KEY", raising=False)
    first = environment.secret(tmp_path / "var")
    assert len(first) >= 50
    assert environment.secret(tmp_path / "var") == first
    assert stat.S_IMODE((tmp_path / "var" / "secret_key").stat().st_mode) == 0o600
    assert environment.secret(tmp_path / "other") != first


def test_secret_is_the_same_for_all_who_ask_at_once(monkeypatch, tmp_path):
    monkeypatch.delenv("SECRET_KEY", raising=False)
    together = threading.Barrier(8)

    def ask(_: int) -> str:
        together.wait(10)
        return environment.secret(tmp_path)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
    assert os.listdir(tmp_path) == ["secret_key"]


def test_secret_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET_KEY", "k" * 50)
    assert environment.secret(tmp_path, required=True) == "k" * 50
    assert not os.listdir(tmp_path)


def test_short_secret_is_refused_without_repeating_it(monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    with pytest.raises(ImproperlyConfigured, match="50 characters") as caught:
        environment.secret(tmp_path)
    assert "hunter2" not in str(caught.value)


def test_site_that_others_reach_brings_its_secret(monkeypatch, tmp_path):
    monkeypatch.delenv("SECRET_KEY", raising=False)
    with pytest.raises(ImproperlyConfigured, match="SECRET_KEY must be set"):
        environment.secret(tmp_path, required=True)


def test_damaged_secret_file_is_named(monkeypatch, tmp_path):
    monkeypatch.delenv("SECRET_KEY", raising=False)
    (tmp_path / "secret_key").write_text("\n")
    with pytest.raises(ImproperlyConfigured, match="secret_key holds no usable key: delete it"):
        environment.secret(tmp_path)


def test_secret_in_a_place_that_is_no_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("SECRET_KEY", raising=False)
    (tmp_path / "var").write_text("a file")
    with pytest.raises(ImproperlyConfigured, match=r"can't be kept in .*secret_key"):
        environment.secret(tmp_path / "var")


def connected(settings: dict[str, object]):
    """A connection of Django's to the database of these settings, outside Django's own register."""
    defaults = {"TIME_ZONE": None, "ATOMIC_REQUESTS": False, "AUTOCOMMIT": True, "TEST": {}}
    return load_backend(str(settings["ENGINE"])).DatabaseWrapper({**defaults, **settings}, alias="tried")


@pytest.mark.django_db(databases=[])
def test_sqlite_waits_in_line_instead_of_failing(tmp_path, django_db_blocker):
    settings = environment.database(None, tmp_path)
    with django_db_blocker.unblock():
        connection = connected(settings)
        with connection.cursor() as cursor:
            assert cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert cursor.execute("PRAGMA synchronous").fetchone() == (1,)  # NORMAL
            assert cursor.execute("PRAGMA busy_timeout").fetchone() == (20_000,)
        # A transaction that has only read so far already keeps other writers waiting.
        connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1").fetchone()
        other = sqlite3.connect(settings["NAME"], timeout=0, isolation_level=None)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        connection.rollback()
        other.execute("BEGIN IMMEDIATE")
        other.close()
        connection.close()


@pytest.mark.postgres
def test_postgresql_by_address(postgres_url, tmp_path, django_db_blocker):
    password = "p@ss/w:rd %é"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS eleanor_environment")
        admin.execute(
            psycopg.sql.SQL("CREATE ROLE eleanor_environment LOGIN PASSWORD {}").format(psycopg.sql.Literal(password))
        )
        where, name = admin.info.host, admin.info.dbname
        url = f"postgresql://eleanor_environment:{quote(password, safe='')}@{where}:{admin.info.port}/{name}"
        try:
            with django_db_blocker.unblock():
                connection = connected(environment.database(f"{url}?application_name=tried", tmp_path))
                with connection.cursor() as cursor:
                    cursor.execute("SELECT current_user, current_setting('application_name')")
                    assert cursor.fetchone() == ("eleanor_environment", "tried")
                connection.close()
        finally:
            admin.execute("DROP ROLE eleanor_environment")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("postgresql:///eleanor?host=/run/postgresql", "/run/postgresql"),
        ("postgres://%2Frun%2Fpostgresql/eleanor", "/run/postgresql"),
        ("postgresql://me@[::1]:5433/eleanor", "::1"),
        ("postgresql:///eleanor", ""),
    ],
)
def test_postgresql_hosts(url, host, tmp_path):
    settings = environment.database(url, tmp_path)
    assert (settings["HOST"], settings["NAME"]) == (host, "eleanor")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "eleanor",
        "mysql://me:hunter2@host/eleanor",
        "sqlite:///eleanor.db",
        "postgresql://me:hunter2@host",
        "postgresql://me:hunter2@host/",
        "postgresql://me:hunter2%zz@host/eleanor",
        "postgresql://me:hunter2@host/eleanor?colour=red",
        "postgresql://me:hunter2@[::1/eleanor",
        "postgresql://me:hunter2\x00@host/eleanor",
    ],
)
def test_unusable_address_is_refused_without_the_password(url, tmp_path):
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL") as caught:
        environment.database(url, tmp_path)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_connection_lifetime(monkeypatch, tmp_path: Path):
    monkeypatch.delenv("DATABASE_CONN_MAX_AGE", raising=False)
    assert environment.database(None, tmp_path)["CONN_MAX_AGE"] == 0
    monkeypatch.setenv("DATABASE_CONN_MAX_AGE", "600")
    assert environment.database("postgresql:///eleanor", tmp_path)["CONN_MAX_AGE"] == 600
