"""From an upload to the plain byte streams in it: gzip, zip, zstd members; judged by the first bytes, not the name."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, Final, cast

from chats.domain.formats.limits import Limits
from chats.domain.formats.problems import LimitPassed, Place, Problem, ReadingProblem

GZIP: Final = b"\x1f\x8b"
ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
PARQUET: Final = b"PAR1"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
ZSTD_METHOD: Final = 93
DAMAGED = (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, OSError)
# What else the library raises over names and numbers of a directory that make no sense.
MALFORMED: Final = (ValueError, NotImplementedError, RuntimeError, OverflowError, IndexError)

_DRIVE = re.compile(r"^[A-Za-z]:")


@dataclass(slots=True)
class Meter:
    """How many bytes came out of one unpacked stream: the most of its passes, since it may be read again."""

    before: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True)
class ByteSource:
    """Bytes that can be read from the start as often as needed. `size` is what they take where they lie."""

    open: Callable[[], BinaryIO]
    size: int
    member: str | None = None


def source_of(upload: str | os.PathLike[str] | IO[bytes]) -> ByteSource:
    """The bytes of a path or of a seekable binary file, which stays open and belongs to the caller."""
    if isinstance(upload, (str, os.PathLike)):
        path = Path(upload)
        return ByteSource(lambda: path.open("rb"), path.stat().st_size)
    upload.seek(0, io.SEEK_END)
    size = upload.tell()
    return ByteSource(lambda: cast(BinaryIO, io.BufferedReader(_View(upload, size), 1 << 16)), size)


class _View(io.RawIOBase):
    """A file that is someone else's, read at a place of its own: several views may be open at once."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        self._file.seek(self._at)
        data = self._file.read(len(view))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at


class CountedStream(io.RawIOBase):
    """A decompressing stream that stops at the byte limit and at the ratio limit."""

    def __init__(
        self,
        inner: BinaryIO,
        compressed: int,
        limits: Limits,
        meter: Meter,
        outer: BinaryIO | None = None,
        declared: int | None = None,
    ) -> None:
        """`outer` is what `inner` reads from, where closing that is left to us; `declared` the size it should have."""
        self._declared = declared
        self._meter = meter
        self._inner = inner
        self._outer = outer
        self._limits = limits
        self._ratio_bytes = max(compressed, 1) * limits.ratio
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        data = self._inner.read(len(view))
        self._read += len(data)
        self._meter.most = max(self._meter.most, self._read)
        if self._meter.before + self._read > self._limits.upload_bytes:
            raise LimitPassed("upload_bytes", self._limits.upload_bytes)
        if self._declared is not None and self._read > self._declared:
            raise zipfile.BadZipFile("a member is larger than the archive says")
        if self._read > self._ratio_bytes:
            raise LimitPassed("ratio", self._limits.ratio)
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
            if self._outer is not None:
                self._outer.close()
        super().close()


def first_bytes(source: ByteSource, count: int = 4) -> bytes:
    with source.open() as file:
        return file.read(count)


def is_zip(head: bytes) -> bool:
    return head.startswith(ZIP)


def unpacked(source: ByteSource, limits: Limits, meter: Meter | None = None) -> tuple[ByteSource, tuple[str, ...]]:
    """The source with its layers of gzip and zstd taken off, and their names from outside in.

    Raises ReadingProblem when there are more layers than allowed. `meter` adds up the members of one archive.
    """
    meter = meter or Meter()
    layers: list[str] = []
    while True:
        head = first_bytes(source)
        if head.startswith(GZIP):
            kind, opener = "gzip", _open_gzip
        elif head.startswith(ZSTD):
            kind, opener = "zstd", _open_zstd
        else:
            return source, tuple(layers)
        if len(layers) >= limits.gzip_levels:
            raise ReadingProblem("nested_archive", name=source.member or "")
        layers.append(kind)
        source = _layer(source, opener, limits, meter)


def _layer(outer: ByteSource, opener: Callable[[BinaryIO], BinaryIO], limits: Limits, meter: Meter) -> ByteSource:
    def reopen() -> BinaryIO:
        file = outer.open()
        return io.BufferedReader(CountedStream(opener(file), outer.size, limits, meter, file), 1 << 16)

    return ByteSource(reopen, outer.size, outer.member)


def _open_gzip(file: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="rb"))


def _open_zstd(file: BinaryIO) -> BinaryIO:
    try:
        import zstandard
    except ImportError as error:
        raise ReadingProblem("missing_library", library="zstandard") from error
    inner = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return cast(BinaryIO, _Checked(cast(BinaryIO, inner), zstandard.ZstdError))


class _Checked(io.RawIOBase):
    """A stream whose own kind of error is told as damage."""

    def __init__(self, inner: BinaryIO, error: type[Exception]) -> None:
        self._inner = inner
        self._error = error

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        try:
            return self._inner.read(size)
        except self._error as error:
            raise zipfile.BadZipFile(str(error)) from error

    def close(self) -> None:
        self._inner.close()
        super().close()


@dataclass(slots=True)
class Archive:
    """The members of a zip that may be read, in their order, and what was refused or passed over."""

    members: list[ByteSource] = field(default_factory=list)
    refused: list[Problem] = field(default_factory=list)
    passed_over: int = 0


@contextmanager
def open_archive(source: ByteSource, limits: Limits) -> Iterator[Archive]:
    """A zip, looked through without unpacking anything.

    Declared sizes are added up first; real sizes are counted while reading. Raises LimitPassed for too many members,
    too many bytes or too high a ratio, and ReadingProblem for an archive that can't be read.
    """
    with source.open() as under:
        try:
            file = zipfile.ZipFile(under)
        except (*DAMAGED, *MALFORMED) as error:
            raise ReadingProblem("damaged_archive", reason=str(error)[:200]) from error
        with file:
            yield _looked_through(file, source, limits)


def _looked_through(archive: zipfile.ZipFile, source: ByteSource, limits: Limits) -> Archive:
    infos = archive.infolist()
    if len(infos) > limits.members:
        raise LimitPassed("members", limits.members)
    total = sum(i.file_size for i in infos)
    if total > limits.upload_bytes:
        raise LimitPassed("upload_bytes", limits.upload_bytes)
    if total > max(source.size, 1) * limits.ratio:
        raise LimitPassed("ratio", limits.ratio)
    found = Archive()
    for info in infos:
        place = Place(member=info.filename)
        if not _is_safe(info):
            found.refused.append(Problem("unsafe_member", place, {"name": info.filename}))
        elif info.is_dir() or _is_litter(info.filename):
            found.passed_over += 1
        elif info.flag_bits & 0x1:
            found.refused.append(Problem("encrypted_member", place, {"name": info.filename}))
        else:
            found.members.append(_member(archive, source, info, limits))
    return found


def _is_safe(info: zipfile.ZipInfo) -> bool:
    name = info.orig_filename.replace("\\", "/")
    if name.startswith("/") or _DRIVE.match(name) or ".." in name.split("/"):
        return False
    kind = stat.S_IFMT(info.external_attr >> 16)
    return kind in (0, stat.S_IFREG, stat.S_IFDIR)


def _is_litter(name: str) -> bool:
    """System folders, dot files, and what data exports hold besides conversations."""
    parts = [p for p in name.replace("\\", "/").split("/") if p]
    return not parts or parts[0] == "__MACOSX" or any(p.startswith(".") for p in parts)


def _member(archive: zipfile.ZipFile, source: ByteSource, info: zipfile.ZipInfo, limits: Limits) -> ByteSource:
    def reopen() -> BinaryIO:
        if info.compress_type == ZSTD_METHOD:
            inner = _open_zstd(_raw_member(source, info))
        else:
            try:
                inner = cast(BinaryIO, archive.open(info))
            except MALFORMED as error:
                raise ReadingProblem("damaged_archive", reason=str(error)[:200]) from error
        return io.BufferedReader(
            CountedStream(inner, info.compress_size, limits, Meter(), declared=info.file_size), 1 << 16
        )

    return ByteSource(reopen, info.file_size, info.filename)


def _raw_member(source: ByteSource, info: zipfile.ZipInfo) -> BinaryIO:
    """The compressed bytes of a member, for a method that the standard library doesn't know."""
    with source.open() as file:
        file.seek(info.header_offset)
        header = file.read(30)
        if len(header) < 30 or header[:4] != ZIP[0]:
            raise ReadingProblem("damaged_archive", reason="no local header")
        name_length, extra_length = struct.unpack("<HH", header[26:30])
        file.seek(name_length + extra_length, io.SEEK_CUR)
        return io.BytesIO(file.read(info.compress_size))


def streams(source: ByteSource) -> Iterator[bytes]:
    """The bytes of a source in blocks of 64 KB, closed at the end."""
    with source.open() as file:
        while block := file.read(1 << 16):
            yield block
