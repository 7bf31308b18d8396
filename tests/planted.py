"""Secrets to plant: 20 kinds, two of each, none of them real; drawn anew so that no scanner trips over this file."""

from __future__ import annotations

import base64
import random
import string
from dataclasses import dataclass


@dataclass(frozen=True)
class Planted:
    kind: str
    secret: str
    """What must not be on disk afterwards."""
    said: str
    """The text that it stands in."""


def _word(rng: random.Random, alphabet: str, size: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(size))


def planted(seed: int = 7) -> list[Planted]:
    rng = random.Random(seed)
    mixed = string.ascii_letters + string.digits
    out: list[Planted] = []

    def add(kind: str, secret: str, said: str) -> None:
        assert "{}" in said
        out.append(Planted(kind, secret, said.format(secret)))

    for n in range(2):
        add("aws key id", "AKIA" + _word(rng, string.ascii_uppercase + string.digits, 16), "key {} is in use")
        add("aws secret", _word(rng, mixed + "/+", 40), "aws_secret_access_key = {}")
        add("github", ["ghp_", "github_pat_"][n] + _word(rng, mixed, 36), "git clone https://{}@github.com/a/b")
        add("gitlab", "glpat-" + _word(rng, mixed, 20), "PRIVATE-TOKEN: {}")
        add("slack", "xoxb-" + _word(rng, string.digits, 12) + "-" + _word(rng, mixed, 24), "slack says {}.")
        add("openai", ["sk-proj-", "sk-"][n] + _word(rng, mixed, 48), "client = OpenAI(api_key='{}')")
        add("anthropic", "sk-ant-api03-" + _word(rng, mixed, 60), "export ANTHROPIC_API_KEY={}")
        add("hugging face", "hf_" + _word(rng, mixed, 34), "huggingface-cli login --token {}")
        add("google", "AIza" + _word(rng, mixed, 35), "maps?key={}&x=1")
        add("stripe", ["sk_live_", "rk_live_"][n] + _word(rng, mixed, 24), 'stripe.api_key = "{}"')
        add("npm", "npm_" + _word(rng, mixed, 36), "//registry.npmjs.org/:_authToken={}")
        add("jwt", _jwt(rng), "Authorization: Bearer {}")
        add("private key", _pem(rng), ["{}", "cat ~/.ssh/id_ed25519\n{}\ndone"][n])
        add("url password", _word(rng, mixed, 12), ["postgres://app:{}@db:5432/x", "redis://:{}@cache:6379/0"][n])
        add("assigned password", _word(rng, mixed + "!#%", 14), ["DB_PASSWORD={}", '{{"password": "{}"}}'][n])
        add("e-mail", f"{_word(rng, string.ascii_lowercase, 7)}.doe@corp-{n}.io", "Author: Jo Doe <{}>")
        add("home", _word(rng, string.ascii_lowercase, 8), ["/home/{}/src/app.py:3", "C:\\Users\\{}\\app"][n])
        add("host", f"build-{_word(rng, string.digits, 4)}.internal", ["ssh deploy@{}", "curl http://{}/status"][n])
        add("cookie", _word(rng, mixed, 32), ["Cookie: sessionid={}", "Set-Cookie: sid={}; Path=/"][n])
        add("basic auth", base64.b64encode(f"me:{_word(rng, mixed, 12)}".encode()).decode(), "Authorization: Basic {}")
    return out


def _jwt(rng: random.Random) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(f'{{"sub":"{_word(rng, string.digits, 9)}"}}'.encode()).decode().rstrip("=")
    return f"{head}.{body}.{_word(rng, string.ascii_letters + string.digits, 43)}"


def _pem(rng: random.Random) -> str:
    rows = "\n".join(_word(rng, string.ascii_letters + string.digits + "+/", 64) for _ in range(4))
    name = "OPENSSH PRIVATE" + " KEY"
    return f"-----BEGIN {name}-----\n{rows}\n-----END {name}-----"


SAFE = [
    "def add(a, b):\n    return a + b\n",
    "token = tokenizer.next_token(); password = getpass.getpass()",
    "assert len(tokens) == max_tokens and key in cache.keys()",
    "commit 3f2a9c1b4d5e6f708192a3b4c5d6e7f801234567",
    'integrity: "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg=="',
    "self.secret_key = secret_key",
    "os.environ['API_KEY']",
    "test_parse_very_long_function_name_with_many_words_1 PASSED",
    "user@example.com and noreply@github.com",
    "listening on 127.0.0.1:8080, version 1.2.3",
    "/usr/lib/python3.12/site-packages/foo/bar.py",
    "/home/user/project and /workspace/app.py and /root/.cache",
    'key: "value"',
    "sort(key=lambda x: x[1])",
    "threading.local() and config.local",
    "3b5d5c3712955042212316173ccf37be800000aa",
    "KEY_PREFIX = 'cache'",
    "password: str = Field(default=None)",
    'if "token" in line: token = line.split("=")[1]',
    "d = {'key': 'name', 'primary_key': True}",
    "https://docs.python.org/3/library/re.html#re.compile",
    "uuid 019b0000-0000-7000-8000-000000000001",
]
"""Ordinary text of sessions: nothing in it may be cut."""
