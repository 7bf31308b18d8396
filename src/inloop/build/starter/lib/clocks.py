"""What time is it? Times of day as texts and as minutes."""

from inloop.build.starter.library import cases


@cases(("09:00", 30), ("23:30", 45), ("00:10", -20), ("12:00", 0), ("08:59", 1), ("10:15", 90), ("22:00", 180), ("06:05", -65), ("00:00", 1440), ("17:45", 15), ("01:01", 1439))
def time_plus(time, more):
    """Move a time of day on by some minutes, past midnight if need be."""
    hours, minutes = time.split(":")
    total = int(hours) * 60 + int(minutes) + more
    total %= 24 * 60
    hour = total // 60
    minute = total % 60
    return f"{hour:02d}:{minute:02d}"


@cases(("09:00", "10:30"), ("23:00", "01:00"), ("12:00", "12:00"), ("00:00", "23:59"), ("08:45", "09:05"), ("22:15", "06:15"), ("10:00", "09:59"), ("13:10", "13:55"), ("18:30", "20:00"), ("05:50", "07:20"))
def minutes_until(start, end):
    """Count the minutes from one time of day to another, past midnight if need be."""
    marks = []
    for time in (start, end):
        hours, minutes = time.split(":")
        marks.append(int(hours) * 60 + int(minutes))
    gap = marks[1] - marks[0]
    if gap < 0:
        gap += 24 * 60
    return gap


@cases("00:00", "00:30", "01:05", "11:59", "12:00", "12:45", "13:00", "18:20", "23:59", "09:10", "20:00")
def half_day_text(time):
    """Write a time of the 24-hour clock with am or pm."""
    hours, minutes = time.split(":")
    hour = int(hours)
    half = "am" if hour < 12 else "pm"
    shown = hour % 12
    if shown == 0:
        shown = 12
    return f"{shown}:{minutes} {half}"


@cases("12:00 am", "12:30 pm", "1:05 am", "1:05 PM", "11:59 pm", "9 am", "9 pm", "12 AM", "10:15 am", "6:45 pm", "12:01 am")
def whole_day_text(text):
    """Turn a time with am or pm into one of the 24-hour clock."""
    time, half = text.lower().split(" ")
    hours, _, minutes = time.partition(":")
    hour = int(hours) % 12
    if half == "pm":
        hour += 12
    return str(hour).zfill(2) + ":" + (minutes or "00")


@cases(((540, 600), (570, 630)), ((540, 600), (600, 660)), ((0, 1440), (60, 90)), ((100, 200), (300, 400)), ((700, 800), (650, 750)), ((480, 720), (480, 720)), ((1300, 1500), (1400, 1440)), ((0, 30), (10, 40)), ((60, 120), (30, 50)), ((900, 960), (930, 945)))
def shared_minutes(first, second):
    """Tell from when and for how long two spans of minutes overlap."""
    start = max(first[0], second[0])
    end = min(first[1], second[1])
    if end <= start:
        return None
    hour, minute = divmod(start, 60)
    return f"{hour}:{minute:02d}", end - start


@cases(("09:07", 15), ("09:08", 15), ("23:55", 15), ("12:30", 60), ("12:29", 60), ("00:02", 5), ("00:03", 5), ("17:44", 30), ("08:10", 20), ("22:14", 10), ("23:30", 60))
def round_clock(time, step):
    """Round a time of day to the nearest step, halves up."""
    hours, minutes = time.split(":")
    total = int(hours) * 60 + int(minutes)
    steps = (total + step // 2) // step
    rounded = steps * step % 1440
    return "%02d:%02d" % (rounded // 60, rounded % 60)


@cases(("09:00", "17:00", 30), ("22:00", "06:00", 45), ("08:00", "12:00", 0), ("10:00", "10:20", 30), ("13:15", "18:45", 15), ("23:30", "00:30", 5), ("06:00", "14:30", 60), ("12:00", "12:00", 10), ("07:45", "16:00", 20), ("18:00", "02:00", 0))
def shift_hours(start, end, pause):
    """Count the hours of a shift without its pause; it may pass midnight."""
    begin = int(start[:2]) * 60 + int(start[3:])
    finish = int(end[:2]) * 60 + int(end[3:])
    if finish < begin:
        finish += 1440
    worked = max(0, finish - begin - pause)
    return round(worked / 60, 2)


@cases("12:00", "03:00", "06:00", "09:00", "12:30", "01:05", "15:15", "23:59", "10:10", "18:45", "00:20")
def clock_hands_angle(time):
    """Find the smaller angle between the hands of a clock."""
    hour, minute = [int(part) for part in time.split(":")]
    short = hour % 12 * 30 + minute * 0.5
    long = minute * 6
    angle = abs(short - long)
    if angle > 180:
        angle = 360 - angle
    return angle


@cases((["08:10", "09:40"], "08:00"), (["08:10", "09:40"], "08:10"), (["08:10", "09:40"], "09:00"), (["08:10", "09:40"], "10:00"), ([], "12:00"), (["23:50", "00:15"], "23:55"), (["18:30", "06:30"], "07:00"), (["12:05"], "11:59"), (["15:00", "14:00"], "13:30"),
       (["07:07"], "20:00"))
def next_departure(times, now):
    """Name the first departure at or after a time, else the first of tomorrow."""
    ordered = sorted(times)
    if not ordered:
        return None
    for time in ordered:
        if time >= now:
            return time
    first = ordered[0]
    return first + " tomorrow"


@cases("10:00", "10:15", "10:30", "10:45", "12:30", "00:45", "23:50", "09:05", "12:00", "15:20", "11:40", "13:31")
def spoken_clock(time):
    """Say a time the way people do."""
    hour, minute = [int(part) for part in time.split(":")]
    word = "past"
    if minute > 30:
        minute = 60 - minute
        hour += 1
        word = "to"
    name = str((hour - 1) % 12 + 1)
    if minute == 0:
        return name + " o'clock"
    shown = {15: "quarter", 30: "half"}.get(minute, str(minute))
    return f"{shown} {word} {name}"


@cases(0, 5, 59, 60, 61, 600, 3599, 3600, 3661, 36000, 86399)
def stopwatch_text(seconds):
    """Write seconds as a stopwatch shows them; hours only if there are any."""
    minutes, rest = divmod(seconds, 60)
    hours = minutes // 60
    minutes %= 60
    if hours > 0:
        return f"{hours}:{minutes:02d}:{rest:02d}"
    return f"{minutes}:{rest:02d}"


@cases("0:00", "0:05", "1:01", "59:59", "1:00:00", "2:03:04", "45", "10:00", "", "12:34:56", "0:1:1")
def stopwatch_seconds(text):
    """Read what a stopwatch shows as seconds."""
    if not text:
        return 0
    total = 0
    factor = 1
    for part in reversed(text.split(":")):
        total += int(part) * factor
        factor *= 60
    return total


@cases(["09:00-12:00"], ["09:00-12:00", "13:00-17:00"], [], ["22:00-02:00"], ["08:15-08:50", "10:00-11:30"], ["00:00-00:00"], ["12:00-12:01"], ["23:59-00:01", "05:00-06:00"], ["07:30-16:15"], ["10:00-10:05", "11:00-11:05"])
def total_of_spans(spans):
    """Add up spans of time to hours and minutes."""
    total = 0
    for span in spans:
        ends = []
        for time in span.split("-"):
            hours, minutes = time.split(":")
            ends.append(int(hours) * 60 + int(minutes))
        total += (ends[1] - ends[0]) % 1440
    return f"{total // 60}h {total % 60:02d}m"


@cases(("12:00", 0, 2), ("12:00", 2, 0), ("23:30", 1, 9), ("01:15", 0, -5), ("08:00", -5, 1), ("18:45", 1, 1), ("00:00", 10, -8), ("20:00", -3, 1), ("05:30", 9, 0), ("22:10", 0, 3), ("03:00", 3, 0))
def time_abroad(time, home, away):
    """Tell the time in another zone, with the day before or after marked."""
    hours, minutes = time.split(":")
    hour = int(hours) - home + away
    mark = ""
    if hour < 0:
        mark = "-1"
    elif hour >= 24:
        mark = "+1"
    shown = str(hour % 24).zfill(2)
    return shown + ":" + minutes + mark


@cases(("09:00", "10:00", 20), ("08:00", "08:00", 15), ("12:00", "11:00", 30), ("07:50", "08:20", 10), ("22:00", "23:59", 60), ("00:00", "01:00", 25), ("13:30", "15:00", 45), ("10:10", "10:40", 15), ("06:00", "06:30", 40), ("16:55", "17:05", 5))
def list_time_slots(start, end, step):
    """List the times from a start to an end, the end left out."""
    begin = int(start[:2]) * 60 + int(start[3:])
    finish = int(end[:2]) * 60 + int(end[3:])
    slots = []
    current = begin
    while current < finish:
        hour, minute = divmod(current, 60)
        slots.append(f"{hour}:{minute:02d}")
        current += step
    return slots
