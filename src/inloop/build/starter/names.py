"""Which names may stand for each other: a family is a list of names that a reader would take for the same thing."""

from __future__ import annotations

_FAMILIES = """
text string source content phrase message raw
word token term
words tokens terms
letter char symbol mark
letters chars symbols marks
digits figures numerals
digit figure numeral
title heading label caption name
names labels titles
line row record
lines rows records
items values elements entries data things
lists groups batches
item value element entry thing
numbers values amounts samples
number value amount
first one left
second other right
start low begin
end high finish
out result found answer collected
total result acc running
count tally hits times
counts tallies totals
index position spot
i row_index a
j column_index b
limit maximum bound cap
width size span
height depth tall
shift offset move_by
step stride pace
steps moves turns
prefix head lead
shown visible kept
kept chosen selected
rest others remaining
hidden covered missing
pieces parts segments
piece part segment bit
current buffer pending
distance gap difference
base origin anchor
wanted target sought
marks separators delimiters
pairs couples links
key field slot
keys fields slots
mapping table
ordered ranked in_order
column col stripe
path location route
paths locations routes
folder directory parent_folder
folders directories
ending suffix tail
dot cut point_at
year yr
month mon
day dd
hour hr
minute mins
seconds secs
minutes mins
hours hrs
time moment when
days span_days
years span_years
more extra
point spot place
points spots places
center middle average
middle mid half_way
node vertex place
links edges arrows
spans ranges intervals
before previous earlier
after following later
best top_one leader
groups buckets classes
percent rate share
merged united combined
scores marks grades
score grade result
unit measure scale
units measures scales
cells fields boxes
cell field box
order purchase request
at cursor
free open_spans empty
most maximum highest
sums totals results
grid board field
factor ratio multiplier
divisor factor part
stack pile heap
seen known visited
shorter common least
even evens
odd odds
leap is_leap_year
half period day_half
red r_value
green g_value
blue b_value
codes signs patterns
byte octet code
bits flags
ones set_bits
noun thing object_name
done finished ready
filled full used
space room free
small little low
tens decades
box frame rectangle
top upper
bottom floor_y
short smallest
long longest
xs across
ys down
degrees angle
moves steps commands
move step command
turn angle swing
radius reach
dx across
dy down
goal target destination
queue waiting line_up
needs requires depends
waiting pending todo
ready possible able
task job step
need requirement
parents owners uppers
joined merged united
apart separate others
group cluster bunch
way route trip
costs prices weights
deepest most lowest
circle ring round_list
prices costs rates
orders purchases requests
unknown missing unpriced
changes events shifts
change event shift_by
busy active running
levels tiers grades
level tier rank
stop finish until
meeting appointment slot
meetings appointments slots
candidate attempt guess
power exponent
pages sheets
price cost
saved reduction off
interest gain growth
coins pieces notes
paid given handed
coin piece note
primes found
prime smaller
quoted inside in_quotes
sign operator_text mark
closers pairs partners
tags topics labels
address mail contact
host server domain
taken used occupied
shared common together
window view part
present known existing
zeros zero_count blanks
squares powers
weights factors
weight factor
bins buckets
last longest
form record answers
required wanted needed
field key column
board cells squares
pattern template shape
tail ending
url address web_link
version release edition
versions releases editions
pair couple duo
columns cols stripes
side flank
stock supply goods
widths spans_of
vowels open_letters
above over_it
tax duty levy
whole entire
sizes dims
scheme protocol
query question_part
kind sort_of category
mask pattern_bits
alive living
home host
away guest
large big huge
defaults fallbacks
default fallback
shares portions
fee charge
clean tidy neat
cents pennies
sentence saying
cards deck
card drawn
ranks places_taken
dice throws
players members
secret hidden_word
flat unrolled
limits bounds
series numbers_row
cart basket
port gate
fragment anchor_part
fits suits
dash hyphen
verb action
gaps holes
positions spots_found
depths levels_down
"""

FAMILIES: dict[str, tuple[str, ...]] = {}
"""Name -> the others of the first family that it stands in."""
for _line in _FAMILIES.strip().splitlines():
    for _name in _line.split():
        FAMILIES.setdefault(_name, tuple(n for n in _line.split() if n != _name))

VERBS: dict[str, tuple[str, ...]] = {
    "count": ("get", "number_of", "tally"),
    "is": ("check", "looks"),
    "find": ("get", "locate", "search"),
    "parse": ("read", "decode"),
    "format": ("show", "render", "write"),
    "split": ("cut", "divide"),
    "merge": ("join", "combine", "unite"),
    "to": ("as", "into"),
    "remove": ("drop", "delete", "strip"),
    "make": ("build", "create"),
    "get": ("find", "fetch"),
    "sum": ("total", "add"),
    "group": ("sort", "collect"),
}
