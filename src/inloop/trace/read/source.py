"""A file as a stream of records, whatever holds them: JSONL, one JSON document, an array, parquet, .gz, .zst."""

from __future__ import annotations

import codecs
import io
import json
import zlib
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from inloop.errors import DataError
from inloop.trace.jsonl import clean, lines_of, loads, tolerant
from inloop.trace.read.place import Place

Records = Iterator[tuple[int, Any]]
CHUNK = 1 << 20
HEAD = 1 << 15
"""Bytes that tell lines from one document."""
DOCUMENT = 1 << 29
"""Bytes of one JSON document that is not line by line; arrays of any size are streamed."""


def magic(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(16)


def records(path: Path, place: Place) -> Records:
    """(line or row, value) of each record; what can't be read is counted in `place`."""
    head = magic(path)
    if head.startswith(b"PAR1"):
        yield from _parquet(path, place)
        return
    with _open(path, head, place) as file:
        yield from _json(file, place)


def _open(path: Path, head: bytes, place: Place) -> IO[bytes]:
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return io.BufferedReader(_Zstd(path, place), CHUNK)
    if head.startswith(b"\x1f\x8b"):
        return io.BufferedReader(_Gzip(path, place), CHUNK)
    for bom, name in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if head.startswith(bom):
            return io.BufferedReader(_Recoded(path, name), CHUNK)
    return path.open("rb", CHUNK)


class _Stream(io.RawIOBase):
    """Bytes that `_more` hands out piece by piece."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            raw = self._file.read(CHUNK)
            self._rest = self._more(raw)
            if not raw:
                break
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    @abstractmethod
    def _more(self, raw: bytes) -> bytes:
        """What `raw` becomes; all that is left when it is empty."""

    def close(self) -> None:
        self._file.close()
        super().close()


class _Recoded(_Stream):
    def __init__(self, path: Path, encoding: str) -> None:
        super().__init__(path)
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")

    def _more(self, raw: bytes) -> bytes:
        return self._decoder.decode(raw, not raw).encode("utf-8", "replace")


class _Gzip(_Stream):
    def __init__(self, path: Path, place: Place) -> None:
        super().__init__(path)
        self._place, self._broken = place, False
        self._inflate = zlib.decompressobj(31)

    def _more(self, raw: bytes) -> bytes:
        if self._broken:
            return b""
        try:
            out = self._inflate.decompress(raw)
            while self._inflate.eof and (rest := self._inflate.unused_data.lstrip(b"\0")):
                self._inflate = zlib.decompressobj(31)
                out += self._inflate.decompress(rest)
        except zlib.error as error:
            self._broken = True
            self._place.skip(f"damaged archive: {error}", kind="file")
            return b""
        if not raw and not self._inflate.eof:
            self._broken = True
            self._place.skip("torn archive", kind="file")
        return out


class _Zstd(_Stream):
    def __init__(self, path: Path, place: Place) -> None:
        super().__init__(path)
        try:
            import zstandard
        except ImportError:
            raise DataError(f"{path} is compressed with zstd", fix="pip install 'inloop[data]'") from None
        self._place, self._broken, self._fault = place, False, zstandard.ZstdError
        self._make = zstandard.ZstdDecompressor
        self._inflate = self._make().decompressobj()
        self._begun = False

    def _more(self, raw: bytes) -> bytes:
        if self._broken or (not raw and not self._begun):
            return b""
        try:
            out = self._one(raw)
        except self._fault as error:
            self._broken = True
            self._place.skip(f"damaged archive: {error}", kind="file")
            return b""
        if not raw and not self._inflate.eof:
            self._broken = True
            self._place.skip("torn archive", kind="file")
        return out

    def _one(self, raw: bytes) -> bytes:
        """An archive may be several frames, one after the other."""
        out = b""
        while raw:
            if self._begun and self._inflate.eof:
                self._inflate = self._make().decompressobj()
            self._begun = True
            out += self._inflate.decompress(raw)
            raw = self._inflate.unused_data if self._inflate.eof else b""
        return out


def _json(file: IO[bytes], place: Place) -> Records:
    """Lines where the first line is a whole value, else a document; an array is streamed."""
    head = io.BufferedReader(file, CHUNK) if not isinstance(file, io.BufferedReader) else file  # type: ignore[type-var]
    start = head.peek(CHUNK)
    start = start[: CHUNK if start[:1] == b"[" else HEAD].lstrip(b" \t\r\n\0\xef\xbb\xbf")
    if start and not _has_json(start):
        place.skip("no JSON in its lines", kind="file")
    elif start.startswith(b"[") and not _first_line_is_record(start):
        yield from _array(head, place)
    elif start.startswith(b"{") and _is_document(start):
        yield from _document(head, place)
    else:
        yield from lines_of(head, place.file, place.skipped)


def _has_json(start: bytes) -> bool:
    """A text file is one reason, not one a line."""
    return start[:1] in (b"{", b"[") or any(
        line.lstrip(b" \t\r\0\xef\xbb\xbf")[:1] in (b"{", b"[") for line in start.split(b"\n")
    )


def _first_line_is_record(start: bytes) -> bool:
    """A JSONL file whose records are lists: a whole list on the first line and something after it."""
    first, found, rest = start.partition(b"\n")
    if not found or not rest.strip():
        return False
    try:
        loads(first)
    except ValueError:
        return False
    return True


def _is_document(start: bytes) -> bool:
    """The first line is only the beginning of a value and the next lines go on inside it."""
    first, _, rest = start.partition(b"\n")
    second = rest.lstrip(b" \t\r\0").split(b"\n", 1)[0]
    if not second or second[:1] == b"{":
        return False
    try:
        loads(first)
    except ValueError:
        return first.rstrip()[-1:] in (b"{", b"[", b",", b":", b"}", b"]") or not second.startswith(b"{")
    return False


def _document(file: IO[bytes], place: Place) -> Records:
    raw = file.read(DOCUMENT + 1)
    if len(raw) > DOCUMENT:
        place.skip(f"a JSON document over {DOCUMENT >> 20} MiB", kind="file")
        return
    try:
        values, fault = [loads(raw)], ""
    except ValueError:
        values, fault = tolerant(raw.strip(b"\r\n \t\0\xef\xbb\xbf"))
    yield from enumerate(values, 1)
    if fault:
        place.at(len(values) + 1).skip(f"document cut or damaged: {fault}", kind="line")


def _array(file: IO[bytes], place: Place) -> Records:
    """The elements of a JSON array one by one, however long it is; documents glued behind it as well."""
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    scan = _Scan()
    number = 0
    while True:
        raw = file.read(CHUNK)
        try:
            scan.text += decoder.decode(raw, not raw)
        except UnicodeDecodeError:
            place.at(number + 1).skip("not UTF-8: the array ends here", kind="line")
            return
        for value in scan.values(last=not raw):
            number += 1
            yield number, value
        if not raw:
            if scan.fault:
                place.at(number + 1).skip(f"document cut or damaged: {scan.fault}", kind="line")
            return


class _Scan:
    """Finds the values of an array in text that arrives piece by piece."""

    _DECODER = json.JSONDecoder()

    def __init__(self) -> None:
        self.text, self.inside, self.fault = "", False, ""
        self._wait = 0

    def values(self, *, last: bool) -> Iterator[Any]:
        """What is whole so far; a long element is tried again only when the text has doubled."""
        if len(self.text) < self._wait and not last:
            return
        at = 0
        while not self.fault:
            at = self._skip(at)
            if at >= len(self.text):
                break
            if not self.inside and self.text[at] == "[":
                self.inside, at = True, at + 1
                continue
            if self.inside and self.text[at] == "]":
                self.inside, at = False, at + 1
                continue
            try:
                value, end = self._DECODER.raw_decode(self.text, at)
            except (ValueError, RecursionError) as error:
                if last:
                    self.fault = getattr(error, "msg", type(error).__name__)
                break
            if end == len(self.text) and not last:
                break
            at = end
            yield clean(value)
        self.text = self.text[at:]
        self._wait = 2 * len(self.text)
        if last and self.inside and not self.fault:
            self.fault = "the array has no end"

    def _skip(self, at: int) -> int:
        while at < len(self.text) and self.text[at] in " \t\r\n,\0\ufeff":
            at += 1
        return at


def _parquet(path: Path, place: Place) -> Records:
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise DataError(f"{path} is a parquet file", fix="pip install 'inloop[data]'") from None
    number = 0
    try:
        with parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=32):
                for row in batch.to_pylist():
                    number += 1
                    yield number, pruned(row)
    except (arrow.ArrowException, OSError) as error:
        place.at(number + 1).skip(f"damaged parquet file: {error}", kind="file")


def pruned(value: Any) -> Any:
    """Without the nulls that a table adds where rows of one column have different keys."""
    if isinstance(value, dict):
        return {k: pruned(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [pruned(v) for v in value]
    return value
