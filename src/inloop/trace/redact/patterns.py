"""Our pattern rules, for what detect-secrets does not cover."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from inloop.trace.redact import looks


@dataclass(frozen=True, slots=True)
class Rule:
    """A secret is group `group` of `pattern`, looked for around the places of its `hints` (lower-case bytes)."""

    kind: str
    pattern: re.Pattern[str]
    hints: tuple[bytes, ...] = ()
    group: int = 0
    accept: Callable[[str], bool] | None = None
    everywhere: bool = True
    """Other copies of the same string in the trajectory are replaced as well."""
    before: int = 100
    """Characters before a hint at which a match may begin, and after it at which one may end."""
    after: int = 600
    run: int = 0
    """Without hints: tried around runs of so many letters and digits."""


_PROMPT = r"(?m)^(?:\([^)\n]{{1,30}}\) ?)?\[?{}@{}(?:[: ][^\n$#%]{{0,120}})?\]?[$#%](?= |$)"
_PRIVATE = (
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,40})\.){1,5}"
    r"(?:internal|corp|lan|intranet|local|localdomain|home\.arpa|private)(?![\w\-(]|\.\w)"
)
_PRIVATE_HINTS = (b".internal", b".corp", b".lan", b".intranet", b".local", b".home.arpa", b".private")
_MARK = "REDACTED_"
OURS: tuple[Rule, ...] = (
    Rule(
        "private_key",
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----.*?"
            r"(?:-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----|\Z)"
            r"|PuTTY-User-Key-File-\d.*?(?:Private-MAC: [0-9a-f]+|\Z)",
            re.DOTALL,
        ),
        (b"private key", b"putty-user-key"),
        before=60,
        after=1 << 20,
    ),
    Rule(
        "jwt",
        re.compile(r"eyJ[A-Za-z0-9_\-=]{8,}\.[A-Za-z0-9_\-=]{8,}(?:\.[A-Za-z0-9_\-+/=]*)?"),
        (b"eyj",),
        before=0,
        after=9000,
    ),
    Rule(
        "password",
        re.compile(r"(?<=://)[^\s:/@\"'<>{}$]{0,80}:([^\s/@\"'<>{}$]{2,200})@"),
        (b"://",),
        1,
        looks.literal,
    ),
    Rule("token", re.compile(r"(?<=://)([A-Za-z0-9_\-]{16,200})@"), (b"://",), 1, lambda t: not t.startswith(_MARK)),
    Rule(
        "webhook",
        re.compile(
            r"https://(?:hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/"
            r"|[\w-]+\.webhook\.office\.com/webhookb2/)([^\s\"'<>]{8,300})"
        ),
        (b"hook",),
        1,
    ),
    Rule(
        "authorization",
        re.compile(
            r"(?i)\b(?:proxy-)?authorization[\"']?\s?[:=,]\s?[\"']?(?:bearer|basic|token|digest|apikey|negotiate)\s+"
            r"([^\s\"'\\,;<>${}]{6,4000})"
        ),
        (b"authorization",),
        1,
        lambda t: not t.startswith(_MARK),
        after=5000,
    ),
    Rule(
        "authorization",
        re.compile(r"(?i)\bbearer\s+([A-Za-z0-9_\-.=+/~]{16,4000})"),
        (b"bearer",),
        1,
        looks.token,
        after=5000,
    ),
    Rule(
        "cookie",
        re.compile(r"(?i)\b(?:set-)?cookie[\"']?\s?[:=]\s?[\"']?((?:[\w.\-]+=[^\s;\"'\\]{6,}(?:;\s?)?){1,40})"),
        (b"cookie",),
        1,
        lambda t: _MARK not in t,
        after=6000,
    ),
    Rule(
        "cookie",
        re.compile(
            r"(?i)\b(?:sessionid|session_id|phpsessid|jsessionid|csrftoken|connect\.sid|xsrf-token)=([^\s;\"'\\&]{8,})"
        ),
        (b"sess", b"srf", b"connect.sid"),
        1,
        looks.literal,
    ),
    Rule(
        "password",
        re.compile(r"(?i)\bmachine\s+\S+\s+login\s+\S+\s+password\s+(\S{3,200})"),
        (b"machine",),
        1,
        looks.literal,
    ),
    Rule(
        "password",
        re.compile(r"(?i)\b(?:password|passphrase|passcode|pin)\s+(?:is|was|to|=)\s+[\"'`]?([^\s\"'`,;]{4,100})"),
        (b"pass",),
        1,
        looks.bare,
    ),
    Rule(
        "password",
        re.compile(r"\$(?:2[abxy]|5|6|y|argon2id?|apr1)\$[./A-Za-z0-9$,=]{20,200}"),
        (b"$",),
    ),
    Rule(
        "email",
        re.compile(
            r"(?<![A-Za-z0-9._%+\-])[A-Za-z0-9](?:[A-Za-z0-9._%+\-]{0,62}[A-Za-z0-9_])?"
            r"@(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,62})\.)+[A-Za-z]{2,24}(?![A-Za-z0-9@])"
        ),
        (b"@",),
        0,
        looks.email,
    ),
    Rule(
        "user",
        re.compile(
            r"(?:(?<![A-Za-z0-9_.])/(?:home|Users|export/home|var/home)/|[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)"
            r"|/mnt/[a-z]/Users/)([A-Za-z][A-Za-z0-9._\-]{0,31})(?=[/\\\s\"':;,)\]}]|$)"
            r"|(?:^|(?<=[\s\"'=:]))~([A-Za-z][A-Za-z0-9._\-]{0,31})/",
            re.MULTILINE,
        ),
        (b"home", b"users", b"~"),
        1,
        looks.person,
    ),
    Rule(
        "user",
        re.compile(r"-(?:home|Users)-([A-Za-z][A-Za-z0-9]{1,31})(?=[-/\\\s\"']|$)"),
        (b"home", b"users"),
        1,
        looks.person,
    ),
    Rule(
        "user",
        re.compile(_PROMPT.format("([A-Za-z][\\w.\\-]{0,31})", "[A-Za-z][\\w.\\-]{0,62}")),
        (b"@",),
        1,
        looks.person,
    ),
    Rule(
        "host",
        re.compile(_PROMPT.format("[A-Za-z][\\w.\\-]{0,80}", "([A-Za-z][\\w.\\-]{0,62})")),
        (b"@",),
        1,
        looks.person,
    ),
    Rule("host", re.compile(rf"(?:(?<![\w.\-@/])|(?<=[@/])){_PRIVATE}"), _PRIVATE_HINTS, accept=looks.host),
    Rule(
        "host",
        re.compile(
            r"(?i)\b(?:ssh|scp|sftp|rsync|mosh)\b[^\n|;]{0,120}?\s(?:[A-Za-z][\w.\-]{0,31}@)([A-Za-z0-9][\w.\-]{1,62})"
        ),
        (b"@",),
        1,
        looks.host,
    ),
)
"""In order: where two overlap, the earlier keeps its span."""
