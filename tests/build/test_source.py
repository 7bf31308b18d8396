"""Sources: folders, git, and an index served here; hostile archives; clear words for what can't be had."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from inloop.build.sdist import fetch_sdist, unpack
from inloop.build.source import is_product, is_test_file, open_source, with_metadata
from inloop.errors import TaskError

POCKET = Path(__file__).parents[1] / "data" / "build" / "pocket"


def sdist(name: str, extra: dict[str, bytes] | None = None) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        files = {f"{name}/{p.relative_to(POCKET).as_posix()}": p.read_bytes() for p in POCKET.rglob("*") if p.is_file()}
        for path, data in (files | (extra or {})).items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return raw.getvalue()


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """A package index on the loopback: what is put into the dict is served."""
    pages: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path)
            self.send_response(200 if body is not None else 404)
            kind = "application/vnd.pypi.simple.v1+json" if body and body[:1] == b"{" else "text/html"
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("PIP_CERT", raising=False)
    yield pages
    server.shutdown()
    server.server_close()
    thread.join()


def listing(*files: tuple[str, bytes]) -> bytes:
    rows = [
        {"url": f"/files/{name}", "hashes": {"sha256": hashlib.sha256(data).hexdigest()}, "yanked": False}
        for name, data in files
    ]
    return json.dumps({"files": rows}).encode()


def test_the_newest_stable_sdist_of_an_index(index: dict[str, bytes], tmp_path: Path) -> None:
    old, new = sdist("pocket-1.9"), sdist("pocket-1.10")
    names = ("pocket-1.9.tar.gz", "pocket-1.10.tar.gz", "pocket-2.0rc1.tar.gz", "pocket-1.11-py3-none-any.whl")
    index["/simple/pocket/"] = listing(*zip(names, (old, new, new, new), strict=True))
    index |= {f"/files/{n}": d for n, d in zip(names, (old, new, new, new), strict=True)}
    tree = open_source("pypi:Pocket", cache=tmp_path)
    assert (tree.name, tree.version, tree.licence) == ("pypi:pocket", "1.10", "MIT")
    assert "pocket/money.py" in tree.product_files and "tests/test_text.py" in tree.test_files
    assert open_source("pypi:pocket==1.9", cache=tmp_path).version == "1.9"
    index.clear()
    with pytest.raises(TaskError, match="has no 'pocket'"):
        fetch_sdist("pocket", cache=tmp_path)


def test_an_html_index_and_a_wrong_digest(index: dict[str, bytes], tmp_path: Path) -> None:
    data = sdist("pocket-1.0")
    digest = hashlib.sha256(data).hexdigest()
    index["/simple/pocket/"] = f'<a href="../../files/pocket-1.0.tar.gz#sha256={digest}">x</a>'.encode()
    index["/files/pocket-1.0.tar.gz"] = data + b"tampered"
    with pytest.raises(TaskError, match="sha256 is not the index's"):
        fetch_sdist("pocket", cache=tmp_path)
    index["/files/pocket-1.0.tar.gz"] = data
    assert fetch_sdist("pocket", cache=tmp_path).version == "1.0"


@pytest.mark.parametrize(
    ("spec", "says"),
    [("nothing", "has no 'nothing'"), ("pocket==9", "no source archive of 9"), ("wheels", "has no source archive"),
     ("a b", "no package name"), ("pocket==x y", "is no version")],
)  # fmt: skip
def test_packages_that_can_not_be_had(index: dict[str, bytes], tmp_path: Path, spec: str, says: str) -> None:
    index["/simple/pocket/"] = listing(("pocket-1.0.tar.gz", b""))
    index["/simple/wheels/"] = listing(("wheels-1.0-py3-none-any.whl", b""))
    with pytest.raises(TaskError) as error:
        fetch_sdist(spec, cache=tmp_path)
    assert says in str(error.value)


def test_archives_that_want_out(tmp_path: Path) -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for name, kind, link in (
            ("p-1/../../evil.py", tarfile.REGTYPE, ""), ("/abs.py", tarfile.REGTYPE, ""),
            ("p-1/link.py", tarfile.SYMTYPE, "/etc/passwd"), ("p-1/hard.py", tarfile.LNKTYPE, "p-1/a.py"),
            ("p-1/dev", tarfile.CHRTYPE, ""), ("p-1/a.py", tarfile.REGTYPE, ""),
        ):  # fmt: skip
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, link
            tar.addfile(info, io.BytesIO(b""))
    path = tmp_path / "p-1.tar.gz"
    path.write_bytes(raw.getvalue())
    files, skipped = unpack(path)
    assert list(files) == ["a.py"] and len(skipped) == 5
    with zipfile.ZipFile(tmp_path / "p-1.zip", "w") as zipped:
        (
            zipped.writestr("p-1/a.py", "x = 1\n"),
            zipped.writestr("p-1/../../b.py", ""),
            zipped.writestr("p-1/big", b"0" * (3 << 20)),
        )
    files, skipped = unpack(tmp_path / "p-1.zip")
    assert list(files) == ["a.py"] and len(skipped) == 2
    (tmp_path / "bad.tar.gz").write_bytes(b"not an archive")
    with pytest.raises(TaskError, match="can't be unpacked"):
        unpack(tmp_path / "bad.tar.gz")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.tar.gz", "p-1.tar.gz", "p-1.zip"]


def test_a_folder_without_links_and_caches(pocket: Path) -> None:
    (pocket / "link.py").symlink_to("/etc/passwd")
    (pocket / "__pycache__").mkdir()
    (pocket / "__pycache__/a.pyc").write_bytes(b"x")
    tree = open_source(str(pocket))
    assert tree.skipped == (("link.py", "link or device"),) and not any("pyc" in p for p in tree.files)
    with pytest.raises(TaskError, match="no such folder"):
        open_source(str(pocket / "nowhere"))
    (pocket / "empty").mkdir()
    with pytest.raises(TaskError, match="no Python files"):
        open_source(str(pocket / "empty"))


def test_layouts(pocket: Path) -> None:
    assert open_source(str(pocket)).python_path == (".",)
    (pocket / "src").mkdir()
    (pocket / "pocket").rename(pocket / "src/pocket")
    tree = with_metadata(open_source(str(pocket)))
    assert tree.python_path == ("src", ".") and "src/pocket-1.2.dist-info/METADATA" in tree.files
    assert is_test_file("a/test_b.py") and is_test_file("tests.py") and not is_test_file("docs/test_b.py")
    assert is_product("pkg/a.py") and not any(map(is_product, ("setup.py", "tests/helper.py", "a/test_x.py", "x.txt")))


def test_an_address_that_git_can_not_clone(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="git can't clone"):
        open_source(f"file://{tmp_path}/nothing.git")
