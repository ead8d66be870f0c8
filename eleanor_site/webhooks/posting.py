"""One POST to an address that a tenant chose. It can't be led to addresses that only this machine can reach."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

Trouble = Literal["", "address", "private", "connection", "certificate", "timeout", "answer"]

SECONDS: Final = 10.0
_READ_AT_MOST: Final = 64 * 1024
# What networks without IPv4 write for an address of it (RFC 6052).
_TRANSLATED: Final = ipaddress.IPv6Network("64:ff9b::/96")
_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a try: the receiver's status, or what kept it from answering."""

    status: int | None
    trouble: Trouble
    milliseconds: int

    @property
    def is_good(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def address_problem(url: str) -> Literal["", "form", "https", "credentials"]:
    """Why nothing can be posted to this address, as far as the text tells; empty when it can."""
    parts = _parts(url)
    if parts is None or parts.scheme not in _PORTS or not parts.hostname:
        return "form"
    if parts.scheme == "http" and not settings.WEBHOOKS_TO_PRIVATE_ADDRESSES:
        return "https"
    if parts.username or parts.password or parts.fragment:
        return "credentials"
    return ""


def post(url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
    """Post once. Never raises, never follows a redirect, and never takes much longer than SECONDS."""
    started = time.monotonic()

    def outcome(status: int | None, trouble: Trouble) -> Outcome:
        return Outcome(status, trouble, round((time.monotonic() - started) * 1000))

    parts = _parts(url)
    if parts is None or address_problem(url):
        return outcome(None, "address")
    try:
        host = str(parts.hostname)
        port = parts.port or _PORTS[parts.scheme]
        reached = _reachable(host, port)
        if reached is None:
            return outcome(None, "private")
        connection = _connection(parts.scheme, host, port, reached)
        # A receiver that sends one byte now and then would pass every time limit of a single read.
        watch = threading.Timer(SECONDS, _cut, [connection.sock])
        watch.start()
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", target, body, {"Host": _host_header(parts), **headers})
            answer = connection.getresponse()
            # A polite end for the receiver, which may still be writing; what it writes isn't kept.
            _drain(answer)
            return outcome(answer.status, "")
        finally:
            watch.cancel()
            connection.close()
    except ssl.SSLCertVerificationError:
        return outcome(None, "certificate")
    except TimeoutError:
        return outcome(None, "timeout")
    except socket.gaierror:
        return outcome(None, "address")
    except (OSError, http.client.HTTPException, ValueError) as error:
        if time.monotonic() - started >= SECONDS:
            return outcome(None, "timeout")
        return outcome(None, "connection" if isinstance(error, OSError) else "answer")


def _parts(url: str) -> SplitResult | None:
    if not url.isascii() or any(c <= " " or c == "\x7f" for c in url):
        return None
    try:
        parts = urlsplit(url)
        _port = parts.port
    except ValueError:
        return None
    return parts


def _host_header(parts: SplitResult) -> str:
    return parts.netloc


def _reachable(host: str, port: int) -> tuple[str, int] | None:
    """The address to connect to, or None when one of the host's is private: names can be made to point anywhere.

    The connection goes to the very address that was looked at, so that a second answer of the name server can't
    lead elsewhere.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    if not settings.WEBHOOKS_TO_PRIVATE_ADDRESSES and not all(_is_public(address) for address in addresses):
        return None
    return addresses[0], port


def _is_public(address: str) -> bool:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour or (parsed.teredo[1] if parsed.teredo else None)
        if parsed in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
        if inner is not None and not inner.is_global:
            return False
    return parsed.is_global and not parsed.is_multicast


def _connection(scheme: str, host: str, port: int, reached: tuple[str, int]) -> http.client.HTTPConnection:
    raw = socket.create_connection(reached, timeout=SECONDS)
    connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
    if scheme == "https":
        try:
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
        except BaseException:
            raw.close()
            raise
    connection.sock = raw
    return connection


def _drain(answer: http.client.HTTPResponse) -> None:
    """Read what the receiver still writes, up to a bound; how that ends doesn't matter any more."""
    left = _READ_AT_MOST
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
        while left > 0:
            part = answer.read1(min(left, 8192))
            if not part:
                return
            left -= len(part)


def _cut(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
