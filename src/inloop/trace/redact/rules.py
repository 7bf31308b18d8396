"""What is looked for: our rules, then detect-secrets' patterns."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Any

from inloop.errors import DataError
from inloop.trace.redact.patterns import OURS, Rule

_GROUPED = {"BasicAuthDetector", "IbmCloudIamDetector", "IbmCosHmacDetector", "SoftlayerDetector", "NpmDetector"}
_COVERED = {"PrivateKeyDetector", "IPPublicDetector", "BasicAuthDetector"}
"""detect-secrets finds the first line of a private key only; the others have rules with exceptions above."""
_PLUGIN_HINTS = {
    "AWSKeyDetector": (b"aws",),
    "AzureStorageKeyDetector": (b"accountkey",),
    "JwtTokenDetector": (b"eyj",),
    "NpmDetector": (b"_authtoken",),
    "SlackDetector": (b"xox", b"hooks.slack"),
}
_PLUGIN_RUNS = {
    "CloudantDetector": 24, "DiscordBotTokenDetector": 23, "GitHubTokenDetector": 40, "GitLabTokenDetector": 25,
    "IbmCloudIamDetector": 44, "IbmCosHmacDetector": 48, "MailchimpDetector": 35, "OpenAIDetector": 51,
    "PypiTokenDetector": 85, "SendGridDetector": 22, "SoftlayerDetector": 64, "SquareOAuthDetector": 50,
    "StripeDetector": 32, "TelegramBotTokenDetector": 35, "TwilioKeyDetector": 34,
}  # fmt: skip
"""The shortest row of letters and digits in what a plugin finds, so that ordinary text is passed over."""


def rules() -> tuple[Rule, ...]:
    """Ours, then each pattern of the installed detect-secrets. Raises DataError when it is missing."""
    return OURS + _plugins()


def _plugins() -> tuple[Rule, ...]:
    try:
        import detect_secrets.plugins as package
        from detect_secrets.plugins.base import RegexBasedDetector
    except ImportError:
        raise DataError("redaction needs detect-secrets", fix="pip install 'inloop[data]'") from None
    out = []
    for module in pkgutil.iter_modules(package.__path__):
        for value in vars(importlib.import_module(f"detect_secrets.plugins.{module.name}")).values():
            if _is_plugin(value, RegexBasedDetector, module.name) and value.__name__ not in _COVERED:
                out += [_rule(value, pattern) for pattern in value.denylist]
    return tuple(out)


def _is_plugin(value: Any, base: type, module: str) -> bool:
    own = isinstance(value, type) and issubclass(value, base) and value.__module__.endswith(f".{module}")
    return own and isinstance(getattr(value, "denylist", None), list | tuple)


def _rule(plugin: Any, pattern: re.Pattern[str]) -> Rule:
    kind = re.sub(r"[^a-z0-9]+", "_", plugin.__name__.removesuffix("Detector").lower()).strip("_")
    grouped = plugin.__name__ in _GROUPED or (plugin.__name__ == "AWSKeyDetector" and pattern.groups == 1)
    accept = (lambda t: bool(re.search(r"\d", t))) if plugin.__name__ == "ArtifactoryDetector" else None
    hints = _PLUGIN_HINTS.get(plugin.__name__, ())
    return Rule(
        kind, pattern, hints, 1 if grouped else 0, accept, run=0 if hints else _PLUGIN_RUNS.get(plugin.__name__, 20)
    )
