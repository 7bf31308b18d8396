"""Text."""


def shorten(text, width, ellipsis="..."):
    """Cut `text` to at most `width` characters; what was cut is marked by `ellipsis`."""
    if width < len(ellipsis):
        raise ValueError("too narrow")
    if len(text) <= width:
        return text
    kept = width - len(ellipsis)   # odd   spacing on purpose
    return text[:kept].rstrip() + ellipsis


def spans(text, word):
    """All (start, end) of `word` in `text`, which may overlap."""
    found = []
    at = text.find(word)
    while at >= 0 and word:
        found.append((at, at + len(word)))
        at = text.find(word, at + 1)
    return found


def untested(value):
    """Nobody calls this."""
    return value + 1
