"""Clocks and calendars, with plain numbers and texts."""

from inloop.build.starter.library import cases

DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
NAMES = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


@cases(59, 60, 0, 3661, 90, 7325, 86399, 45, 600, 4000)
def clock(seconds):
    """Write seconds as hours, minutes and seconds."""
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"


@cases("1:30", "0:05", "10:00", "2:45", "0:00", "12:34", "3:07", "23:59", "7:20", "100:01")
def to_minutes(text):
    """Read hours and minutes as minutes."""
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


@cases((1, 2023), (2, 2023), (2, 2024), (4, 2000), (2, 1900), (12, 1999), (2, 2000), (9, 2021), (7, 2022), (11, 2020))
def days_in_month(month, year):
    """Count the days of a month."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if month == 2 and leap:
        return 29
    return DAYS[month - 1]


@cases((1, 1), (3, 1), (12, 31), (2, 28), (1, 31), (5, 10), (7, 4), (10, 15), (2, 1), (9, 30))
def day_of_year(month, day):
    """Number the days of a year that has no leap day."""
    return sum(DAYS[: month - 1]) + day


@cases("2024-03-15", "1999-12-31", "2000-01-01", "2010-10-09", "1985-07-20", "2023-02-28", "1970-05-06", "2031-11-11", "1900-08-03",
       "2012-04-30")
def european_date(text):
    """Turn a date with the year first into one with the day first."""
    year, month, day = text.split("-")
    day = day.lstrip("0")
    month = month.lstrip("0")
    return ".".join([day, month, year])


@cases("09:30", "00:15", "12:00", "13:05", "23:59", "11:45", "12:30", "18:20", "01:01", "21:10")
def twelve_hour(text):
    """Write a time of day with am or pm."""
    hour, minute = text.split(":")
    hour = int(hour)
    suffix = "pm" if hour >= 12 else "am"
    hour = hour % 12
    if hour == 0:
        hour = 12
    return f"{hour}:{minute} {suffix}"


@cases("9:30 am", "12:15 am", "12:00 pm", "1:05 pm", "11:59 pm", "6:45 am", "12:59 pm", "7:07 pm", "10:10 am", "3:33 pm")
def full_day_hour(text):
    """Give the hour, from zero to 23, of a time with am or pm."""
    time, half = text.split(" ")
    hour = int(time.split(":")[0])
    if hour == 12:
        hour = 0
    if half == "pm":
        hour += 12
    return hour


@cases((3, 5), (0, 1), (6, 1), (2, 7), (5, 10), (1, 0), (4, 3), (6, 13), (3, 100), (0, 20))
def weekday_after(start, days):
    """Name the weekday some days after another one."""
    return NAMES[(start + days) % 7]


@cases((1990, 5, 20, 2020, 5, 20), (1990, 5, 20, 2020, 5, 19), (2000, 1, 1, 2000, 12, 31), (1985, 12, 31, 2021, 1, 1), (2010, 7, 4, 2024, 8, 1),
       (1999, 3, 10, 2019, 2, 28), (2001, 6, 15, 2011, 6, 16), (1970, 10, 2, 2005, 10, 1), (2015, 4, 4, 2016, 4, 4), (1960, 9, 9, 2000, 11, 1))
def age(born_year, born_month, born_day, year, month, day):
    """Count the full years since a birthday."""
    years = year - born_year
    if (month, day) < (born_month, born_day):
        years -= 1
    return years


@cases(5, 65, 3600, 90061, 0, 59, 7200, 86400, 3725, 600)
def duration(seconds):
    """Write a time span with its two largest units."""
    parts = []
    for name, size in [("d", 86400), ("h", 3600), ("m", 60), ("s", 1)]:
        count = seconds // size
        seconds = seconds % size
        if count > 0:
            parts.append(str(count) + name)
    return " ".join(parts[:2])


@cases((9, 17, 12), (9, 17, 17), (22, 6, 23), (22, 6, 3), (22, 6, 12), (0, 5, 0), (8, 12, 7), (20, 4, 4), (18, 2, 18), (10, 11, 10))
def is_open(opens, closes, hour):
    """Tell if a shop is open at an hour; it may close after midnight."""
    if opens <= closes:
        return opens <= hour < closes
    return hour >= opens or hour < closes


@cases((10, 30, 45), (23, 50, 20), (0, 0, 0), (9, 15, 60), (12, 59, 1), (5, 5, 125), (22, 10, 300), (7, 45, 15), (18, 0, 59), (1, 30, 1440))
def add_minutes(hour, minute, more):
    """Move a time of day on by some minutes."""
    total = hour * 60 + minute + more
    return (total // 60 % 24, total % 60)


@cases((1, 2024), (3, 2024), (4, 2023), (12, 1999), (7, 2000), (10, 2021), (6, 2010), (9, 2015), (2, 2022), (11, 2005))
def quarter(month, year):
    """Name the quarter of a year that a month lies in."""
    number = (month - 1) // 3 + 1
    return f"Q{number} {year}"


@cases((2024, 1, 1), (2024, 11, 3), (2023, 12, 1), (2000, 6, 18), (2010, 3, 9), (2021, 10, 2), (1999, 5, 8), (2022, 7, 30), (2015, 9, 4), (2018, 2, 10))
def add_months(year, month, more):
    """Move a month on by some months."""
    index = year * 12 + month - 1 + more
    return (index // 12, index % 12 + 1)
