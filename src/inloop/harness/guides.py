"""Feed-forward: text put in front of the agent, each piece named and recorded."""

from __future__ import annotations

from inloop.harness.clip import clip
from inloop.harness.config import HarnessConfig
from inloop.tasks.task import Task

STRATEGY = "Read the file, edit it, test. When the tests pass, submit."
NOTES = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md")
NOTES_CHARS = 2000
FILES = 60


def guides(task: Task, config: HarnessConfig) -> dict[str, str]:
    """name -> text, in the order of the config; a guide that has nothing to say is left out."""
    made = {name: _GUIDES[name](task) for name in config.guides}
    made["text"] = config.guide_text
    return {name: text for name, text in made.items() if text}


def _strategy(task: Task) -> str:
    return STRATEGY


def _files(task: Task) -> str:
    root = task.workspace
    names = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file() and ".git" not in p.parts)
    more = f" and {len(names) - FILES} more" if len(names) > FILES else ""
    return f"Files: {' '.join(names[:FILES])}{more}"


def _notes(task: Task) -> str:
    """The project's own notes, from the pristine workspace."""
    for name in NOTES:
        path = task.workspace / name
        if path.is_file() and not path.is_symlink():
            return f"{name}:\n{clip(path.read_text('utf-8', 'replace').strip(), NOTES_CHARS)}"
    return ""


_GUIDES = {"strategy": _strategy, "files": _files, "notes": _notes}
