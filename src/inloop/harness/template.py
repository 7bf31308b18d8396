"""A chat template as pieces of text: what opens a context, what ends a turn, what lies between two turns."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

from inloop.errors import ConfigError

Chat = dict[str, Any]

MARK = "Zq7markVx"
"""Stands for an assistant's turn while the text around it is rendered; no template changes a bare word."""

FILL = "Zq7fillVx"
"""Stands for the content of a user message."""

PLAIN = (
    "{% for m in messages %}{{ '### ' + m['role'] + '\n' + m['content'] + eos_token + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '### assistant\n' }}{% endif %}"
)
"""For base models without a template of their own."""


class Template:
    """Renders text pieces with the tokenizer's own chat template and turns them into ids.

    Ids are made piece by piece and only ever appended; what was sampled is never rendered again."""

    def __init__(self, tokenizer: Any, *, source: str | None = None, **variables: Any) -> None:
        self.tokenizer = tokenizer
        self._lock = threading.Lock()  # fast tokenizers are not safe to share between threads
        self.source = source or tokenizer.chat_template or PLAIN
        self.variables = variables
        self.takes_system = self._takes_system()
        self.stop = self._stop_token()
        self.stop_id: int = tokenizer.convert_tokens_to_ids(self.stop)
        also = [tokenizer.eos_token_id] if tokenizer.eos_token_id not in (None, self.stop_id) else []
        self.stop_ids = (self.stop_id, *also)
        self._control = self._control_tokens()
        self._short: dict[str, tuple[int, ...]] = {}
        self._frame: tuple[str, str] | tuple[()] | None = None

    def text(self, messages: Sequence[Chat], *, prompt: bool, tools: Sequence[Chat] = ()) -> str:
        """The messages as the template writes them; `prompt` adds what makes the model answer."""
        rendered: str = self.tokenizer.apply_chat_template(
            self._fold_system(list(messages)),
            tools=list(tools) or None,
            tokenize=False,
            add_generation_prompt=prompt,
            chat_template=self.source,
            **self.variables,
        )
        return rendered

    def ids(self, text: str) -> list[int]:
        if (known := self._short.get(text)) is not None:
            return list(known)
        backend = self._backend()
        with self._lock:
            if backend is None:
                out: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
            else:
                out = backend.encode_batch_fast([text], add_special_tokens=False)[0].ids
        if len(text) <= 64 and len(self._short) < 10_000:  # 'ok', '```test```': most of what is said is said often
            self._short[text] = tuple(out)
        return out

    def decode(self, ids: Sequence[int]) -> str:
        backend = self._backend()
        with self._lock:
            if backend is not None:
                return str(backend.decode(list(ids), skip_special_tokens=False))
            text = self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return str(text)

    def _backend(self) -> Any:
        """What `encode` and `decode` of a fast tokenizer come down to, without their overhead; None where they do
        more than that."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        return None if backend is None or backend.padding or backend.truncation else backend

    def after_turn(self, before: Sequence[Chat], results: Sequence[Chat]) -> str:
        """The text from an assistant's stop token on: `before` ends with a turn that holds MARK."""
        rendered = self.text([*before, *results], prompt=True)
        return rendered[rendered.index(self.stop, rendered.rindex(MARK)) :]

    def user_turn(self, content: str) -> str:
        """The text from an assistant's stop token on, when a user message follows and the model is to answer.

        Rendered once with a mark in place of the content, where the template takes content as it is; a content that
        begins or ends like a tag is always rendered, since templates look for those."""
        before = [{"role": "user", "content": "u"}, {"role": "assistant", "content": MARK}]
        if self._frame is None:
            probe = self.after_turn(before, [{"role": "user", "content": f" \n{FILL}\n "}])
            head, found, tail = probe.partition(f" \n{FILL}\n ")
            self._frame = (head, tail) if found else ()
        if not self._frame or content.lstrip()[:1] in ("<", "[") or content.rstrip()[-1:] in (">", "]"):
            return self.after_turn(before, [{"role": "user", "content": content}])
        return f"{self._frame[0]}{content}{self._frame[1]}"

    def neutral(self, text: str) -> str:
        """`text` without control tokens: a file or a program must not be able to end a turn or open one."""
        return self._control.sub(lambda m: m[0][0] + " " + m[0][1:], text)

    def _takes_system(self) -> bool:
        probe = [{"role": "system", "content": MARK}, {"role": "user", "content": "u"}]
        self.takes_system = True
        try:
            return MARK in self.text(probe, prompt=True)
        except Exception as error:  # templates refuse with whatever they like
            if "TemplateError" in {c.__name__ for c in type(error).__mro__}:
                return False
            raise

    def _fold_system(self, messages: list[Chat]) -> list[Chat]:
        """Where a template has no system role, its text goes in front of the first user message."""
        if self.takes_system or len(messages) < 2 or messages[0]["role"] != "system":
            return messages
        first = {**messages[1], "content": f"{messages[0]['content']}\n\n{messages[1]['content']}"}
        return [first, *messages[2:]]

    def _stop_token(self) -> str:
        """The special token that the template puts right behind an assistant's turn."""
        turn = [{"role": "user", "content": "u"}, {"role": "assistant", "content": MARK}]
        rendered = self.text([*turn, {"role": "user", "content": "u"}], prompt=True)
        after = rendered[rendered.rindex(MARK) + len(MARK) :].lstrip()
        known = {str(t) for t in self.tokenizer.get_added_vocab()} | {str(self.tokenizer.eos_token)}
        found = [t for t in known if t and after.startswith(t)]
        if not found:
            raise ConfigError(
                f"the chat template does not end an assistant's turn with a special token, but with {after[:30]!r}",
                fix="give the tokenizer a template that does: the model could never learn to stop",
            )
        return max(found, key=len)

    def _control_tokens(self) -> re.Pattern[str]:
        added = self.tokenizer.added_tokens_decoder.values()
        texts = {t.content for t in added if t.special or t.content in self.source} | {self.stop}
        return re.compile("|".join(re.escape(t) for t in sorted(texts, key=len, reverse=True) if len(t.strip()) > 1))
