"""Source distributions from the package index, fetched and unpacked without running their build."""

from __future__ import annotations

import hashlib
import html.parser
import io
import json
import os
import re
import ssl
import subprocess
import sys
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from inloop.errors import TaskError
from inloop.files import write_atomic

MAX_FILE = 2 << 20
MAX_ARCHIVE = 64 << 20
MAX_UNPACKED = 256 << 20
ENDINGS = (".tar.gz", ".zip", ".tar.bz2", ".tgz")


@dataclass(frozen=True)
class Archive:
    name: str
    version: str
    path: Path


@dataclass(frozen=True)
class _Link:
    filename: str
    url: str
    sha256: str
    yanked: bool = False


def fetch_sdist(spec: str, *, cache: Path | None = None) -> Archive:
    """The newest release's source archive, or that of 'NAME==VERSION', from pip's configured index.

    Raises TaskError: no such package, no such version, no source archive, or a digest that does not fit."""
    name, _, version = (part.strip() for part in spec.partition("=="))
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise TaskError(f"'{spec}' is no package name", fix="write pypi:NAME or pypi:NAME==VERSION")
    name = re.sub(r"[-_.]+", "-", name).lower()
    version, link = _choose(name, version, _links(name))
    path = (cache or default_cache()) / "sdist" / PurePosixPath(link.filename).name
    if not path.is_file() or (link.sha256 and _digest(path.read_bytes()) != link.sha256):
        data = _get(link.url)[0]
        if link.sha256 and _digest(data) != link.sha256:
            raise TaskError(f"{link.url}: its sha256 is not the index's", fix="try again, or another index")
        write_atomic(path, data)
    return Archive(name, version, path)


def default_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "inloop"


def _choose(name: str, version: str, links: list[_Link]) -> tuple[str, _Link]:
    from packaging.version import InvalidVersion, Version  # in the data extra

    found: list[tuple[Version, _Link]] = []
    for link in links:
        stem = next((link.filename.removesuffix(e) for e in ENDINGS if link.filename.endswith(e)), "")
        try:
            found.append((Version(stem.rpartition("-")[2]), link))
        except InvalidVersion:
            continue
    if not found:
        raise TaskError(f"pypi:{name} has no source archive", fix="use its git repository instead")
    if version:
        try:
            exact = [f for f in found if f[0] == Version(version)]
        except InvalidVersion:
            raise TaskError(f"pypi:{name}=={version}: '{version}' is no version") from None
        newest = ", ".join(str(v) for v, _ in sorted(found, key=lambda f: f[0])[-3:])
        if not exact:
            raise TaskError(f"pypi:{name} has no source archive of {version}", fix=f"the newest are {newest}")
        return version, exact[0][1]
    stable = [f for f in found if not f[0].is_prerelease and not f[1].yanked] or found
    best = max(stable, key=lambda f: f[0])
    return str(best[0]), best[1]


def index_url() -> str:
    """PIP_INDEX_URL, else what `pip config` says, else pypi.org."""
    if url := os.environ.get("PIP_INDEX_URL"):
        return url.rstrip("/")
    ask = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    run = subprocess.run(ask, capture_output=True, text=True, check=False)
    return (run.stdout.strip() if run.returncode == 0 else "") or "https://pypi.org/simple"


def _links(name: str) -> list[_Link]:
    page = f"{index_url()}/{name}/"
    body, kind, url = _get(page, name=name)
    if "json" in kind:
        rows = json.loads(body).get("files", [])
        return [_Link(_file(r["url"]), urllib.parse.urljoin(url, r["url"]), r.get("hashes", {}).get("sha256", ""),
                      bool(r.get("yanked"))) for r in rows]  # fmt: skip
    parser = _Anchors()
    parser.feed(body.decode("utf-8", "replace"))
    return [
        _Link(_file(href), urllib.parse.urljoin(url, href.partition("#")[0]), href.partition("#sha256=")[2], yanked)
        for href, yanked in parser.found
    ]


def _file(url: str) -> str:
    return PurePosixPath(urllib.parse.unquote(urllib.parse.urlparse(url).path)).name


class _Anchors(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "a" and (href := values.get("href")):
            self.found.append((href, "data-yanked" in values))


def _get(url: str, name: str = "") -> tuple[bytes, str, str]:
    """(body, content type, final URL). Raises TaskError."""
    if not url.startswith(("https://", "http://")):
        raise TaskError(f"{url}: not an http(s) address", fix="set PIP_INDEX_URL to a package index")
    accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.5, */*;q=0.1"
    request = urllib.request.Request(url, headers={"Accept": accept, "User-Agent": "inloop"})
    context = ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or None)
    try:
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            body = answer.read(MAX_ARCHIVE + 1)
            if len(body) > MAX_ARCHIVE:
                raise TaskError(f"{url}: over {MAX_ARCHIVE >> 20} MB", fix="use a smaller package")
            return body, answer.headers.get("Content-Type", ""), answer.url
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404 and name:
            raise TaskError(f"the package index has no '{name}'", fix="check the spelling") from None
        raise TaskError(f"{url}: HTTP {error.code}", fix="try again, or set PIP_INDEX_URL") from None
    except OSError as error:
        raise TaskError(f"{url}: {error}", fix="check the network, or set PIP_INDEX_URL") from None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def unpack(archive: Path) -> tuple[dict[str, bytes], list[tuple[str, str]]]:
    """(files, skipped) with the archive's top folder taken off; links, devices and paths that leave it are skipped.

    Raises TaskError for an archive that can't be read or unpacks to too much."""
    files: dict[str, bytes] = {}
    skipped: list[tuple[str, str]] = []
    total = 0
    try:
        for name, data, why in _members(archive):
            parts = PurePosixPath(name).parts
            if ".." in parts or name.startswith("/") or not name.isprintable():
                skipped.append((name, "odd path"))
            elif why:
                skipped.append((name, why))
            elif len(parts) > 1:
                total += len(data)
                files["/".join(parts[1:])] = data
            if total > MAX_UNPACKED:
                raise TaskError(f"{archive}: unpacks to over {MAX_UNPACKED >> 20} MB", fix="use a smaller package")
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise TaskError(f"{archive}: can't be unpacked ({error})", fix="delete it and try again") from None
    return files, skipped


def _members(archive: Path) -> Iterator[tuple[str, bytes, str]]:
    """(name, content, why it is skipped) of each member that is not a folder; nothing is written to disk."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as zipped:
            for info in zipped.infolist():
                if not info.is_dir():
                    big = info.file_size > MAX_FILE
                    yield info.filename, b"" if big else zipped.read(info), f"over {MAX_FILE >> 20} MB" if big else ""
        return
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes()), mode="r:*") as tar:
        for member in tar:
            if member.isdir():
                continue
            if not member.isreg():
                yield member.name, b"", "link or device"
            elif member.size > MAX_FILE:
                yield member.name, b"", f"over {MAX_FILE >> 20} MB"
            else:
                content = tar.extractfile(member)
                yield member.name, content.read() if content else b"", ""
