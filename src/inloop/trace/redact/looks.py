"""Does a found string look like what it was found as? Keeps words, names and templates from being cut."""

from __future__ import annotations

import math
import re
from collections import Counter


def entropy(text: str) -> float:
    """Bits a character."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values()) if size else 0.0


def random(text: str) -> bool:
    """Looks drawn at random: all three classes of characters, and more bits than words or paths have."""
    classes = (r"[a-z]", r"[A-Z]", r"\d")
    if text.startswith("REDACTED_") or any(len(re.findall(c, text)) < 2 for c in classes):
        return False
    return entropy(text) >= 4.4 and not re.search(r"[a-z]{9}|[A-Z][a-z]+[A-Z][a-z]+[A-Z][a-z]+", text)


NO_VALUE = re.compile(
    r"REDACTED_|<[\w .-]+>$|\$|\{|%(?:\(|[sdrif]\b)|\*{3}|\.{3}|x{4}"
    r"|(?:none|null|true|false|undefined|self|this|str|string|int|bytes"
    r"|optional|any|object|example|changeme|your|my|the|test|required|token|passw(?:or)?d|pwd|pass|username|user|secret|key|value|not|and|or|if"
    r"|os|env|process|config|settings|args|getenv|getpass|input|field|field_name|default|bearer|basic)\b",
    re.IGNORECASE,
)


def literal(value: str) -> bool:
    """A value that somebody wrote down, no name of one, no call, no template."""
    if len(value) < 4 or not re.search(r"[^\W_]", value):
        return False
    return not NO_VALUE.match(value) and not re.search(r"[(){}\[\]]|^\w+\.\w+(?:\.\w+)*$", value)


def bare(value: str) -> bool:
    """Without quotes: only what no identifier looks like."""
    digits, letters = bool(re.search(r"\d", value)), bool(re.search(r"[A-Za-z]", value))
    return literal(value) and digits and (letters or len(value) >= 6) and not re.fullmatch(r"[\d.,:]{1,6}", value)


def address(text: str) -> bool:
    octets = [int(o) for o in text.split(".")]
    version = max(octets) < 10
    quiet = version or octets[0] in (0, 127, 255) or octets[:2] in ([192, 0], [198, 51], [203, 0])
    return all(o < 256 for o in octets) and not quiet


def odd(value: str) -> bool:
    """A value that no person would choose for a name or a word."""
    return len(value) >= 12 and bare(value) and entropy(value) >= 3.0 and not re.fullmatch(r"[a-z_\-]+\d{1,4}", value)


PEOPLE = (
    "root", "user", "users", "ubuntu", "debian", "runner", "work", "app", "admin", "vscode", "node", "docker",
    "shared", "public", "home", "username", "agent", "box", "example", "localhost", "sandbox", "workspace",
    "build", "ec2-user", "linuxbrew", "codespace", "openhands", "jovyan", "git", "hg", "svn", "test", "tests",
    "testuser", "dev", "developer", "data", "project", "projects", "code", "source", "python", "server",
    "client", "web", "www", "www-data", "guest", "temp", "nobody", "name", "someone", "somebody", "foo",
    "bar", "baz", "you", "your", "yourname", "host", "local", "main", "master", "base", "default", "system",
    "service", "admin1", "deploy", "jenkins", "gitlab", "github", "claude", "codex", "model", "tool",
    "assistant", "human", "person", "student", "root1", "file", "files", "path", "linux",
)  # fmt: skip
"""Names of accounts that say nothing of a person."""


def person(name: str) -> bool:
    return name.lower() not in PEOPLE and not name.startswith(("REDACTED_", "$", "{", "<", "*", "."))


def email(text: str) -> bool:
    name, _, domain = text.partition("@")
    quiet = ("example.com", "example.org", "example.net", "noreply.github.com", "anthropic.com", "openai.com")
    return person(name) and name != "noreply" and domain.lower() not in quiet and not name.startswith("REDACTED_")


_NO_HOST = (
    "localhost", "self", "this", "cls", "kubernetes", "docker", "host", "threading", "gevent", "flask", "config",
    "settings", "env", "werkzeug", "compose", "contextvars", "thread",
)  # fmt: skip


_KNOWN_HOSTS = ("github.com", "gitlab.com", "bitbucket.org", "example.com", "example.org", "huggingface.co")


def host(text: str) -> bool:
    """A machine of somebody: no public forge, no attribute that happens to be called `local`."""
    labels = text.lower().split(".")
    if labels[0] in _NO_HOST or text.startswith("REDACTED_") or text.lower().endswith(_KNOWN_HOSTS):
        return False
    attribute = labels[-1] in ("local", "private") and len(labels) == 2
    return not attribute or bool(re.search(r"[-\d]", labels[0]))


def token(text: str) -> bool:
    """What stands after a known beginning looks drawn at random."""
    mixed = bool(re.search(r"[a-z]", text) and re.search(r"[A-Z]", text)) and entropy(text) >= 3.8
    return len(set(text)) >= 8 and (bool(re.search(r"\d", text)) or mixed)


def is_digest(text: str, start: int) -> bool:
    """An integrity hash names a file's content, nobody's secret."""
    run = text[start : start + 7].lower()
    return run.startswith(("sha256-", "sha384-", "sha512-", "sha1-"))


def is_version(text: str, start: int) -> bool:
    return "ersion" in text[max(0, start - 12) : start].lower()
