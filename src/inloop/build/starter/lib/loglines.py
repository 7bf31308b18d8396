"""Lines of a log: levels, fields, messages and times."""

from inloop.build.starter.library import cases

LEVELS = ["DEBUG", "INFO", "WARN", "ERROR"]


@cases("ERROR disk full", "[info] started", "10:01 WARN: slow", "no level here", "", "debug x", "the ERROR: late", "[WARN]", "infos: 3", "12 [error]: INFO", "warn error")
def log_level(line):
    """Find the first word of a log line that is a level."""
    for word in line.split():
        name = word.strip("[]:").upper()
        if name in LEVELS:
            return name
    return None


@cases("user=ann code=7", "start", "a=1 b= c=3", "x=1 x=2", "url=/p?q=1 ms=20", "", "ok n=-5 =4", "size=007", "k=v extra words", "t=1.5 n=12", "id=9 id2=x9")
def log_fields(line):
    """Read the key=value pieces of a log line; whole numbers become numbers."""
    fields = {}
    for piece in line.split():
        key, sign, value = piece.partition("=")
        if not sign or not key:
            continue
        digits = value.lstrip("-")
        fields[key] = int(value) if digits.isdigit() else value
    return fields


@cases(["INFO a", "INFO b", "ERROR c"], [], ["WARN x"], ["  stack", "ERROR y"], ["info a", "INFO b"], ["hello", "DEBUG d"], ["ERROR"], ["INFO: a", "INFO b"], ["WARN a", "INFO WARN", "WARN c"], ["", "DEBUG"], ["Error x", "error y", "z"])
def level_tallies(lines):
    """Count the lines per level; a line without a level counts as the level other."""
    counts = {}
    for line in lines:
        words = line.split()
        level = words[0].rstrip(":").upper() if words else ""
        if level not in LEVELS:
            level = "other"
        counts[level] = counts.get(level, 0) + 1
    return counts


@cases(["ERROR a", "INFO b", "ERROR c"], ["INFO a"], [], ["ERROR: disk", "WARN x"], ["ERROR one", "at f", "INFO"], ["error small"], ["ERROR  x "], ["INFO ERROR y"], ["ERROR"], ["ERRORS 3", "ERROR: 4"], ["WARN w", "ERROR e: f"])
def last_error(lines):
    """Give the number of the last line with an error, counted from 1, and its message."""
    for index in range(len(lines) - 1, -1, -1):
        level, space, message = lines[index].partition(" ")
        if level.rstrip(":") == "ERROR":
            return (index + 1, message.strip())
    return (0, "")


@cases((["db: up", "web: ok", "db: down"], "db"), (["dbx: a", "db: b"], "db"), ([], "a"), (["a:b"], "a"), (["web: x: y"], "web"), (["DB: no"], "db"), ([" db: in"], "db"), (["a: ", "a: 1"], "a"), (["x", "y"], "x"),
       (["job: 1", "job 2", "job: 3"], "job"), (["p: a", "q: b"], "q"))
def messages_from(lines, prefix):
    """List what the lines that begin with a prefix and a colon say after it."""
    head = prefix + ":"
    messages = []
    for line in lines:
        if not line.startswith(head):
            continue
        rest = line[len(head):].strip()
        if rest:
            messages.append(rest)
    return messages


@cases(("10:00:05", "10:01:00"), ("09:59:59", "10:00:00"), ("23:59:50", "00:00:10"), ("12:00:00", "12:00:00"), ("01:02:03", "04:05:06"), ("00:00:00", "23:59:59"), ("18:30:00", "06:30:00"), ("07:00:30", "07:10:00"), ("05:05:05", "05:05:06"),
       ("20:00:01", "20:00:00"))
def log_gap(before, after):
    """Count the seconds from one clock time to the next; a smaller time is on the next day."""
    moments = []
    for text in (before, after):
        hours, minutes, seconds = [int(part) for part in text.split(":")]
        moments.append(hours * 3600 + minutes * 60 + seconds)
    gap = moments[1] - moments[0]
    if gap < 0:
        gap += 24 * 3600
    return gap


@cases(["1 start a", "4 end a"], ["0 start a", "2 start b", "5 end b"], [], ["3 end x"], ["1 start a", "2 end a", "5 start a", "9 end a"], ["10 start t", "10 end t"], ["1 start a", "3 start a", "8 end a"], ["2 start p", "7 end q"],
       ["1 start a", "2 start b", "6 end a", "9 end b"], ["1 start a", "4 end a", "9 end a"])
def task_seconds(lines):
    """Sum how long each task ran, from lines such as 3 start build and 8 end build."""
    busy = {}
    totals = {}
    for line in lines:
        moment, event, task = line.split()
        if event == "start":
            busy[task] = int(moment)
        elif task in busy:
            seconds = int(moment) - busy.pop(task)
            totals[task] = totals.get(task, 0) + seconds
    return totals


@cases(["GET /a 120ms", "GET /b 90ms"], ["GET /x 2s", "GET /y 300ms"], [], ["oops"], ["PUT /p 5ms", "PUT /q 5ms"], ["GET /a", "GET /b 7ms"], ["GET /s 1s", "GET /t 1500ms"], ["GET /m 900ms", "GET /n 1s"], ["POST /z 0ms"],
       ["GET /u 10", "GET /v 1ms"], ["A /a 3s", "B /b 20ms", "C /c 4s"])
def slowest_request(lines):
    """Find the path of the request that took longest; times end with ms or s."""
    slowest = None
    most = -1
    for line in lines:
        parts = line.split()
        if len(parts) != 3 or not parts[2].endswith("s"):
            continue
        unit = 1 if parts[2].endswith("ms") else 1000
        spent = int(parts[2].rstrip("ms")) * unit
        if spent > most:
            slowest, most = parts[1], spent
    return slowest


@cases(["a", "a", "b"], ["x", "x", "x"], [], ["a", "b", "a"], ["one"], ["p", "p", "q", "q"], ["t ", "t", "u"], ["k", "l", "l", "l", "k"], ["", "", "end"], ["no", "NO"], ["r", "r", "r", "s", "r", "r"])
def fold_repeats(lines):
    """Write a line that repeats the one before it only once, with a count."""
    folded = []
    for line in lines:
        text = line.rstrip()
        if folded and folded[-1][0] == text:
            folded[-1][1] += 1
        else:
            folded.append([text, 1])
    return [text if count == 1 else f"{text} (x{count})" for text, count in folded]


@cases((["INFO a", "ERROR b"], "WARN"), (["INFO a", "WARN b"], "INFO"), ([], "INFO"), (["ERROR x", "  at f", "INFO y"], "ERROR"), (["DEBUG d", " more"], "WARN"), (["odd", "WARN w"], "WARN"), (["INFO a", " b", "WARN c"], "WARN"),
       (["DEBUG d", "INFO i"], "DEBUG"), (["WARN w", "ERROR e"], "ERROR"), (["ERROR e", " s1", " s2"], "WARN"), (["WARNING x", "WARN y"], "INFO"))
def lines_at_least(lines, level):
    """Keep the lines of a level or a worse one, with the lines that go on from them."""
    limit = LEVELS.index(level)
    kept = []
    shown = False
    for line in lines:
        word = line.split(" ")[0]
        if word in LEVELS:
            shown = LEVELS.index(word) >= limit
        if shown:
            kept.append(line)
    return kept


@cases(["ERROR db: a", "ERROR web: b", "ERROR db: c"], ["INFO db: ok"], [], ["ERROR lost"], ["ERROR x: 1", "WARN x: 2"], ["ERROR a: b: c"], ["ERROR b: 1", "ERROR a: 1"], ["ERROR q: 1", "ERROR q: 2", "ERROR p: 1"], ["WARN z: 1", "ERROR z: 2"],
       ["ERROR b: 1", "ERROR a: 1", "ERROR a: 2"])
def errors_by_source(lines):
    """List each source of errors with its count, most errors first."""
    tally = {}
    for line in lines:
        level, _, rest = line.partition(" ")
        if level != "ERROR":
            continue
        source = rest.split(":")[0] if ":" in rest else "unknown"
        tally[source] = tally.get(source, 0) + 1
    ranked = sorted(tally.items(), key=lambda pair: (-pair[1], pair[0]))
    return [f"{name} {count}" for name, count in ranked]


@cases(["09:15 ERROR", "09:40 ERROR"], ["10:00 INFO", "11:30 ERROR"], [], ["00:59 ERROR", "01:00 ERROR"], ["23:10 WARN"], ["noon ERROR"], ["08:00 ERROR x", "10:00 ERROR"], ["7:05 ERROR", "07:06 ERROR"], ["12:00 NOERROR"],
       ["05:00 ERROR", "06:00 ok", "05:30 ERROR"])
def errors_per_hour(lines):
    """Count the errors in each hour of the day."""
    counts = {}
    for line in lines:
        when, _, rest = line.partition(" ")
        if not rest.startswith("ERROR") or ":" not in when:
            continue
        hour = int(when.split(":")[0])
        counts[hour] = counts.get(hour, 0) + 1
    return counts


@cases(["start", "  at f", "end"], [], ["  lost"], ["a", "b"], ["ERR", "  x", "  y", "ok"], ["one", "", "two"], ["k", "\tt"], ["m", " n", "", " o"], ["  p", "q"], ["r", "s", " t"], ["u", "v", "\tw", " x"])
def join_continued(lines):
    """Join the lines that begin with a blank to the line that they go on from."""
    joined = []
    for line in lines:
        text = line.strip()
        if not text:
            continue
        if joined and line[0].isspace():
            joined[-1] += " | " + text
        else:
            joined.append(text)
    return joined


@cases("mail ann@x.org sent", "token=abc123 ok", "password=x y", "plain text", "user=ann token=zz", "", "from a@b to c@d", "id=7 Token=Q", "pass=1 key=2", "token= end", "key=k=v @home")
def hide_secrets(line):
    """Put stars in place of the values of secret fields and of the names in mail addresses."""
    shown = []
    for word in line.split():
        key, sign, value = word.partition("=")
        if sign and key.lower() in ("token", "password", "key"):
            word = key + sign + "*" * min(len(value), 3)
        elif "@" in word:
            word = "***" + word[word.index("@"):]
        shown.append(word)
    return " ".join(shown)
