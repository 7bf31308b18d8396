"""What no single pattern finds quickly: assignments to telling names, known beginnings of tokens, random strings,
addresses. Works on a view of the text as bytes, one a character, so that most of it is passed over in C."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inloop.trace.redact import looks

Hit = tuple[int, int, str]
"""(start, end, kind)."""

RUN = 20
"""Letters, digits, `_` and `-` in one row: shorter ones are no tokens."""
_RUNS = bytes(
    97 if chr(i) in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-" else 32 for i in range(256)
)
_DIGITS = bytes(48 if 48 <= i <= 57 else 46 if i == 46 else 32 for i in range(256))


class View:
    """A text, its lower-case Latin-1 bytes (others are '?'), and its long runs."""

    def __init__(self, text: str) -> None:
        raw = text.encode("latin-1", "replace")
        self.text, self.low = text, raw.lower()
        self._raw = raw
        self.runs = list(_runs(raw.translate(_RUNS)))

    def places(self, needle: bytes) -> Iterator[int]:
        at = self.low.find(needle)
        while at >= 0:
            yield at
            at = self.low.find(needle, at + 1)

    def digits(self) -> bytes:
        return self._raw.translate(_DIGITS)


def _runs(shape: bytes) -> Iterator[tuple[int, int]]:
    needle = b"a" * RUN
    at = shape.find(needle)
    while at >= 0:
        end = shape.find(b" ", at + RUN)
        end = len(shape) if end < 0 else end
        yield at, end
        at = shape.find(needle, end)


_NAMES = (b"key", b"token", b"secret", b"passw", b"pass", b"pwd", b"credential", b"pin")
_OWNERS = (
    "api", "auth", "access", "account", "service", "secret", "private", "encryption", "signing", "client",
    "master", "db", "database", "admin", "user", "root", "login", "ssh", "pgp", "gpg", "app", "bot", "refresh",
    "bearer", "session", "csrf", "xsrf", "webhook", "storage", "license", "personal", "deploy", "hf", "github",
    "gitlab", "openai", "anthropic", "aws", "azure", "google", "stripe", "slack", "npm", "pypi",
)  # fmt: skip
_NAME = re.compile(
    r"(?P<strong>secret|passwords?|passwd|passphrase|passcode|pwd|credentials?)(?:[_-]?(?:value|base64|b64|hash|text|key))?"
    r"|(?P<weak>keys?|tokens?|pass|pin)(?![a-z])",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"\\?[\"']?\]?\s{0,3}(?::\s?(?:str|bytes)\s?)?(?:=>|:=|==?|:|,)\s{0,3}[rbf]?\\?([\"'])(?P<value>[^\"'\\\n]{4,400})\\?\1"
)
_PLAIN = re.compile(r"\\?[\"']?\s?[:=]\s?\\?[\"']?(?P<value>[^\s\"',;\\&|<>(){}]{4,400}+)(?![(\[{])")


_FLAG = re.compile(
    r"(?i)(?<![\w-])--?(?:password|passwd|passphrase|pass|token|secret|api[-_]?key|access[-_]?key|auth[-_]?token)"
    r"(?P<sign>[= ])[\"']?(?P<value>[^\s\"'|;&\\]{4,200})"
)


def assignments(view: View) -> Iterator[Hit]:
    """`password = "..."`, `API_KEY=...`, `"token": "..."`; after a weak name only what looks like a secret."""
    text = view.text
    for place in sorted({at for name in _NAMES for at in view.places(name)}):
        if (flag := _flag(text, place)) is not None:
            yield flag
            continue
        name = _NAME.match(text, place)
        if name is None:
            continue
        strong = name["strong"] is not None or _owned(text, place)
        if name["weak"] and not strong and place and text[place - 1].isalpha():
            continue
        quoted = _QUOTED.match(text, name.end())
        found = quoted or _PLAIN.match(text, name.end())
        if found is None:
            continue
        value = found["value"]
        shouted = strong and text[place : name.end()].isupper()
        accept = looks.literal if strong and (quoted or shouted) else looks.bare if strong else looks.odd
        if accept(value):
            yield *found.span("value"), "secret"


def _flag(text: str, place: int) -> Hit | None:
    """`--password x`, `--api-key=x`."""
    start = (
        max(text.rfind(" ", place - 16 if place > 16 else 0, place), text.rfind("\n", max(0, place - 16), place)) + 1
    )
    if text[start : start + 1] != "-":
        return None
    found = _FLAG.match(text, start)
    if found and (looks.literal if found["sign"] == "=" else looks.bare)(found["value"]):
        return *found.span("value"), "secret"
    return None


def _owned(text: str, place: int) -> bool:
    """`api_key`, `accessToken`: the word before makes it a secret's name."""
    return text[max(0, place - 12) : place].lower().rstrip("_- ").endswith(_OWNERS)


_COMMAND = re.compile(
    r"(?i)\b(?:sshpass -p\s?|mysql\b[^\n|;]{0,80}? -p|curl\b[^\n|;]{0,200}?(?:-u|--user) ?[\"']?[^\s:\"']{1,64}:)[\"']?"
    r"(?P<value>[^\s\"'|;&\\]{4,200})"
)


def commands(view: View) -> Iterator[Hit]:
    """Passwords that well-known programs take on their command line."""
    for name in (b"sshpass", b"mysql", b"curl"):
        for at in view.places(name):
            found = _COMMAND.match(view.text, at)
            if found and looks.literal(found["value"]):
                yield *found.span("value"), "secret"


_BEGINNINGS = (
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-",
    "xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-", "sk-", "sk_live_", "sk_test_",
    "rk_live_", "rk_test_", "pk_live_", "hf_", "npm_", "pypi-", "dop_v1_", "doo_v1_", "dapi", "lin_api_",
    "ntn_", "secret_", "shpat_", "shpss_", "shpca_", "gsk_", "xai-", "r8_", "tvly-", "pplx-", "sbp_", "whsec_",
    "sq0atp-", "sq0csp-", "EAAA", "key-", "AKC", "GOCSPX-", "AIza", "AGE-SECRET-KEY-1", "nvapi-", "fw_", "co_",
    "cfut_", "rpa_", "wandb_v1_", "figd_", "pat-na1-", "PMAK-", "NRAK-", "sntrys_", "sntryu_", "SG", "hvs",
    "hvb", "ya29", "dp",
)  # fmt: skip
_DOTTED_BEGINNINGS = ("hvs.", "hvb.", "SG.", "ya29.", "dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "atlasv1.", "1//")
_DOTTED = re.compile(
    r"(?<![A-Za-z0-9_.-])(?:hvs\.|hvb\.|SG\.|ya29\.|dp\.(?:pt|st|ct|sa)\.|atlasv1\.|1//0)[A-Za-z0-9_\-./]{20,400}"
)
_AWS = re.compile(r"(?<![A-Z0-9])A(?:3T[A-Z0-9]|BIA|CCA|GPA|IDA|ROA|KIA|SIA)[0-9A-Z]{16}(?![A-Z0-9])")


def tokens(view: View) -> Iterator[Hit]:
    """Runs with a known beginning, AWS key ids, and runs that look drawn at random."""
    text = view.text
    for start, end in view.runs:
        run = text[start:end]
        if "KIA" in run or "SIA" in run or run[0] == "A":
            yield from ((start + m.start(), start + m.end(), "aws_key") for m in _AWS.finditer(run))
        if (dotted := _dotted(text, start)) is not None:
            yield dotted
        elif run.startswith(_BEGINNINGS) and looks.token(run):
            yield start, end, "token"
        elif end - start >= 32 and not looks.is_digest(text, start):
            stop = end + len(text[end : end + 2]) - len(text[end : end + 2].lstrip("="))
            around = (text[start - 1 : start], text[stop : stop + 1])
            if end - start <= 88 and not set(around) & {"/", "+"} and looks.random(text[start:stop]):
                yield start, stop, "secret"


def _dotted(text: str, start: int) -> Hit | None:
    """The run follows a beginning that has a dot in it."""
    before = text[max(0, start - 8) : start]
    known = next((b for b in _DOTTED_BEGINNINGS if before.endswith(b)), None)
    if known is None:
        return None
    found = _DOTTED.match(text, start - len(known))
    return (*found.span(), "token") if found and looks.token(found[0]) else None


_ADDRESS = re.compile(r"(?<![\w.\-=<>~^])(?:\d{1,3}\.){3}\d{1,3}(?![\w\-]|\.\d)")


def addresses(view: View) -> Iterator[Hit]:
    """IPv4 addresses that name somebody's machine."""
    shape = view.digits()
    at = shape.find(b"0.0")
    while at >= 0:
        start = max(0, at - 2)
        for place in range(start, at + 1):
            found = _ADDRESS.match(view.text, place)
            if found and (place == 0 or not view.text[place - 1].isdigit()):
                if looks.address(found[0]) and not looks.is_version(view.text, place):
                    yield *found.span(), "ip"
                at = found.end()
                break
        at = shape.find(b"0.0", at + 1)


SCANNERS = (tokens, assignments, commands, addresses)
