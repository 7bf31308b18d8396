"""Our rules, for what detect-secrets does not cover."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """A secret is group `group` of `pattern`; tried only on texts that hold one of `hints` (lower case)."""

    kind: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ()
    group: int = 0
    accept: Callable[[str], bool] | None = None
    everywhere: bool = True
    """Other copies of the same string in the trajectory are replaced as well."""


def entropy(text: str) -> float:
    """Bits a character."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values()) if size else 0.0


def _random(text: str) -> bool:
    """Looks drawn at random: all three classes of characters, and more bits than words or paths have."""
    classes = (r"[a-z]", r"[A-Z]", r"\d")
    if text.startswith("REDACTED_") or any(len(re.findall(c, text)) < 2 for c in classes):
        return False
    return entropy(text) >= 4.4 and not re.search(r"[a-z]{9}|[A-Z][a-z]+[A-Z][a-z]+[A-Z][a-z]+", text)


_NO_VALUE = re.compile(
    r"REDACTED_|<[\w .-]+>$|\$|\{|%[(\w]|\*{3}|\.{3}|x{4}"
    r"|(?:none|null|true|false|undefined|self|this|str|string|int|bytes"
    r"|optional|any|object|example|changeme|your|my|the|test|required|token|password|secret|key|value|not|and|or|if"
    r"|os|env|process|config|settings|args|getenv|getpass|input|field|field_name|default|bearer|basic)\b",
    re.IGNORECASE,
)


def _literal(value: str) -> bool:
    """A value that somebody wrote down, no name of one, no call, no template."""
    return len(value) >= 4 and not _NO_VALUE.match(value) and not re.search(r"[(){}\[\]]|^\w+\.\w+(?:\.\w+)*$", value)


def _bare(value: str) -> bool:
    """Without quotes: only what no identifier looks like."""
    digits, letters = bool(re.search(r"\d", value)), bool(re.search(r"[A-Za-z]", value))
    return _literal(value) and digits and (letters or len(value) >= 6) and not re.fullmatch(r"[\d.,:]{1,6}", value)


def _address(text: str) -> bool:
    octets = [int(o) for o in text.split(".")]
    quiet = (
        octets[0] in (0, 127, 255) or text in ("1.1.1.1", "8.8.8.8") or octets[:2] in ([192, 0], [198, 51], [203, 0])
    )
    return all(o < 256 for o in octets) and not quiet


PEOPLE = (
    "root", "user", "users", "ubuntu", "debian", "runner", "work", "app", "admin", "vscode", "node", "docker", "shared",
    "public", "home", "username", "agent", "box", "example", "localhost", "sandbox", "workspace", "build", "ec2-user",
    "linuxbrew", "codespace", "openhands", "jovyan", "git", "hg", "svn",
)  # fmt: skip
"""Names of accounts that say nothing of a person."""


def _person(name: str) -> bool:
    return name.lower() not in PEOPLE and not name.startswith(("REDACTED_", "$", "{", "<", "*", "."))


def _email(text: str) -> bool:
    name, _, domain = text.partition("@")
    quiet = ("example.com", "example.org", "example.net", "noreply.github.com", "anthropic.com", "openai.com")
    return _person(name) and name != "noreply" and domain.lower() not in quiet and not name.startswith("REDACTED_")


_NO_HOST = (
    "localhost", "self", "this", "cls", "kubernetes", "docker", "host", "threading", "gevent", "flask", "config",
    "settings", "env", "werkzeug", "compose", "contextvars", "thread",
)  # fmt: skip


def _host(text: str) -> bool:
    first = text.split(".")[0].lower()
    return first not in _NO_HOST and not text.startswith("REDACTED_")


_KEYWORD = (
    r"(?:api|auth|access|account|service|secret|private|encryption|signing|client|master|db|database|admin|user|root|login"
    r"|ssh|pgp|app|bot|refresh|id|bearer|session|csrf|webhook|storage|license)?[_\- ]?"
    r"(?:key|secret|token|password|passwd|passphrase|passcode|pwd|pass|credentials?|pin)"
)
_NAMED = rf"(?<![A-Za-z])[\w.\-]{{0,40}}?(?<![a-z]){_KEYWORD}s?(?:_?(?:id|value|base64|b64|hash|text))?"
_HINTS = ("key", "secret", "token", "passw", "passphrase", "passcode", "pwd", "pass", "credential", "pin")
_QUOTED = re.compile(
    rf"(?i){_NAMED}\\?[\"']?\]?\s{{0,3}}"
    rf"(?::\s?(?:str|bytes)\s?)?(?:=>|:=|==?|:|,)\s{{0,3}}[rbf]?\\?([\"'])([^\"'\\\n]{{4,400}})\\?\1"
)
_UPPER = re.compile(
    r"(?<![A-Za-z])(?:[A-Z0-9_]{0,40}_)?(?:KEY|SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|PWD|PASS|CREDENTIALS?|PIN)(?:_ID)?"
    r"[\"']?\s?[=:]\s?[\"']?([^\s\"',;\\&|<>(){}]{4,400})"
)
_LOWER = re.compile(rf"(?i){_NAMED}[\"']?\s?(?:=|:)\s?([^\s\"',;\\&|<>(){{}}]{{4,400}})")
_FLAG = re.compile(
    r"(?i)(?:--?(?:password|passwd|passphrase|pass|token|secret|api[-_]?key|access[-_]?key|auth[-_]?token)[= ]\s?"
    r"|\bsshpass -p\s?"
    r"|\bmysql\b[^\n|;]{0,80}? -p|\bcurl\b[^\n|;]{0,200}?(?:-u|--user) ?[\"']?[^\s:\"']{1,64}:)[\"']?"
    r"([^\s\"'|;&\\]{4,200})"
)
_TOKENS = (
    r"ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-|gldt-|glrt-|glcbt-|xox[abeoprs]-|xapp-|sk-ant-|sk-proj-|sk-or-|sk-lf-|sk-"
    r"|hf_|npm_|pypi-|dop_v1_|doo_v1_|dapi|lin_api_|ntn_|secret_|hvs\.|hvb\.|dp\.pt\.|dp\.st\.|shpat_|shpss_|shpca_|gsk_|xai-"
    r"|r8_|tvly-|pplx-|sbp_|sk_live_|sk_test_|rk_live_|rk_test_|pk_live_|whsec_|sq0atp-|sq0csp-|EAAA|SG\.|key-|AKC|ya29\.|1//0"
    r"|GOCSPX-|AIza|AGE-SECRET-KEY-1|atlasv1\.|nvapi-|fw_|co_|cfut_|rpa_|wandb_v1_|figd_|pat-na1-|PMAK-|NRAK-|sntrys_|sntryu_"
)
_TOKEN_HINTS = (
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "glcbt-", "xox", "xapp-", "sk-",
    "hf_", "npm_", "pypi-", "dop_v1_", "doo_v1_", "dapi", "lin_api_", "ntn_", "secret_", "hvs.", "hvb.", "dp.pt.",
    "dp.st.", "shpat_", "shpss_", "shpca_", "gsk_", "xai-", "r8_", "tvly-", "pplx-", "sbp_", "k_live_", "k_test_",
    "whsec_", "sq0atp-", "sq0csp-", "eaaa", "sg.", "key-", "akc", "ya29.", "1//0", "gocspx-", "aiza",
    "age-secret-key-1", "atlasv1.", "nvapi-", "fw_", "co_", "cfut_", "rpa_", "wandb_v1_", "figd_", "pat-na1-", "pmak-",
    "nrak-", "sntrys_", "sntryu_",
)  # fmt: skip


def _token(text: str) -> bool:
    """After a known beginning stands something with digits, or long enough not to be a word."""
    return bool(re.search(r"\d", text)) and len(set(text)) >= 8


_PROMPT = r"(?m)^(?:\([^)\n]{{1,30}}\) ?)?\[?{}@{}(?:[: ][^\n$#%]{{0,120}})?\]?[$#%](?= |$)"
_PRIVATE = (
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,40})\.){1,5}"
    r"(?:internal|corp|lan|intranet|local|localdomain|home\.arpa|private)(?![\w\-(]|\.\w)"
)
_PRIVATE_HINTS = (".internal", ".corp", ".lan", ".intranet", ".local", ".home.arpa", ".private")
OURS: tuple[Rule, ...] = (
    Rule(
        "private_key",
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----.*?"
            r"(?:-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----|\Z)"
            r"|PuTTY-User-Key-File-\d.*?(?:Private-MAC: [0-9a-f]+|\Z)",
            re.DOTALL,
        ),
        ("private key", "putty-user-key"),
    ),
    Rule(
        "token",
        re.compile(rf"(?<![A-Za-z0-9_-])(?:{_TOKENS})[A-Za-z0-9_\-.=/+]{{12,400}}(?<![.=/+-])"),
        _TOKEN_HINTS,
        accept=_token,
    ),
    Rule(
        "aws_key",
        re.compile(r"(?<![A-Z0-9])(?:A3T[A-Z0-9]|ABIA|ACCA|AGPA|AIDA|AROA|AKIA|ASIA)[0-9A-Z]{16}(?![A-Z0-9])"),
        ("akia", "asia", "abia", "acca", "a3t", "agpa", "aida", "aroa"),
    ),
    Rule("jwt", re.compile(r"eyJ[A-Za-z0-9_\-=]{8,}\.[A-Za-z0-9_\-=]{8,}(?:\.[A-Za-z0-9_\-+/=]*)?"), ("eyj",)),
    Rule(
        "password",
        re.compile(r"(?<=://)[^\s:/@\"'<>{}$]{0,80}:([^\s/@\"'<>{}$]{2,200})@"),
        ("://",),
        1,
        lambda t: not t.startswith("REDACTED_"),
    ),
    Rule(
        "token", re.compile(r"(?<=://)([A-Za-z0-9_\-]{16,200})@"), ("://",), 1, lambda t: not t.startswith("REDACTED_")
    ),
    Rule(
        "webhook",
        re.compile(
            r"https://(?:hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/"
            r"|[\w-]+\.webhook\.office\.com/webhookb2/)([^\s\"'<>]{8,300})"
        ),
        ("hooks.slack", "api/webhooks", "webhook.office"),
        1,
    ),
    Rule(
        "authorization",
        re.compile(
            r"(?i)\b(?:proxy-)?authorization[\"']?\s?[:=,]\s?[\"']?(?:bearer|basic|token|digest|apikey|negotiate)\s+"
            r"([^\s\"'\\,;<>${}]{6,4000})"
        ),
        ("authorization",),
        1,
        lambda t: not t.startswith("REDACTED_"),
    ),
    Rule("authorization", re.compile(r"(?i)\bbearer\s+([A-Za-z0-9_\-.=+/~]{16,4000})"), ("bearer",), 1, _token),
    Rule(
        "cookie",
        re.compile(r"(?i)\b(?:set-)?cookie[\"']?\s?[:=]\s?[\"']?((?:[\w.\-]+=[^\s;\"'\\]{6,}(?:;\s?)?){1,40})"),
        ("cookie",),
        1,
        lambda t: "REDACTED_" not in t,
    ),
    Rule(
        "cookie",
        re.compile(
            r"(?i)\b(?:sessionid|session_id|phpsessid|jsessionid|csrftoken|connect\.sid|xsrf-token)=([^\s;\"'\\&]{8,})"
        ),
        ("sess", "csrf", "connect.sid", "xsrf"),
        1,
        _literal,
    ),
    Rule(
        "password", re.compile(r"(?i)\bmachine\s+\S+\s+login\s+\S+\s+password\s+(\S{3,200})"), ("machine",), 1, _literal
    ),
    Rule(
        "password",
        re.compile(r"(?i)\b(?:password|passphrase|passcode|pin)\s+(?:is|was|to|=)\s+[\"'`]?([^\s\"'`,;]{4,100})"),
        ("passw", "passphrase", "passcode"),
        1,
        _bare,
    ),
    Rule(
        "password",
        re.compile(r"\$(?:2[abxy]|5|6|y|argon2id?|apr1)\$[./A-Za-z0-9$,=]{20,200}"),
        ("$2", "$5$", "$6$", "$y$", "$argon2", "$apr1$"),
    ),
    Rule("secret", _QUOTED, _HINTS, 2, _literal),
    Rule("secret", _FLAG, ("-p", "token", "secret", "key", "curl"), 1, _literal),
    Rule("secret", _UPPER, _HINTS, 1, _literal),
    Rule("secret", _LOWER, _HINTS, 1, _bare),
    Rule(
        "secret",
        re.compile(
            r"(?<![A-Za-z0-9+/_\-=.])(?<!sha256-)(?<!sha384-)(?<!sha512-)([A-Za-z0-9+_\-]{32,88}={0,2})(?![A-Za-z0-9+/_\-])"
        ),
        (),
        1,
        _random,
    ),
    Rule(
        "email",
        re.compile(
            r"(?<![A-Za-z0-9._%+\-])[A-Za-z0-9](?:[A-Za-z0-9._%+\-]{0,62}[A-Za-z0-9_])?"
            r"@(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,62})\.)+[A-Za-z]{2,24}(?![A-Za-z0-9@])"
        ),
        ("@",),
        0,
        _email,
    ),
    Rule(
        "user",
        re.compile(
            r"(?:(?<![A-Za-z0-9_.])/(?:home|Users|export/home|var/home)/|[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)"
            r"|/mnt/[a-z]/Users/|(?<![\w~])~)([A-Za-z][A-Za-z0-9._\-]{0,31})(?=[/\\\s\"':;,)\]}]|$)"
        ),
        ("/home/", "/users/", "\\users", "~"),
        1,
        _person,
        everywhere=False,
    ),
    Rule(
        "user",
        re.compile(r"-(?:home|Users)-([A-Za-z][A-Za-z0-9]{1,31})(?=[-/\\\s\"']|$)"),
        ("-home-", "-users-"),
        1,
        _person,
        everywhere=False,
    ),
    Rule(
        "user",
        re.compile(_PROMPT.format("([A-Za-z][\\w.\\-]{0,31})", "[A-Za-z][\\w.\\-]{0,62}")),
        ("@",),
        1,
        _person,
        everywhere=False,
    ),
    Rule(
        "host", re.compile(_PROMPT.format("[A-Za-z][\\w.\\-]{0,80}", "([A-Za-z][\\w.\\-]{0,62})")), ("@",), 1, _person
    ),
    Rule("host", re.compile(rf"(?:(?<![\w.\-@/])|(?<=[@/])){_PRIVATE}"), _PRIVATE_HINTS, accept=_host),
    Rule(
        "host",
        re.compile(
            r"(?i)\b(?:ssh|scp|sftp|rsync|mosh)\b[^\n|;]{0,120}?\s(?:[A-Za-z][\w.\-]{0,31}@)([A-Za-z0-9][\w.\-]{1,62})"
        ),
        ("ssh", "scp", "sftp", "rsync", "mosh"),
        1,
        _host,
    ),
    Rule(
        "ip", re.compile(r"(?<![\w.\-=<>~^])(?:\d{1,3}\.){3}\d{1,3}(?![\w\-]|\.\d)"), (), 0, _address, everywhere=False
    ),
)
"""In order: where two overlap, the earlier keeps its span."""
