"""Reports: what tested functions computed, as a document, and that as HTML and Markdown.

series     one arm: median, intervals, ratio to the reference, curves with bands
section    one part of a study with its arms, and where links to them lead
answer     what the numbers say, in sentences that do not say more than the numbers
wording    numbers as people read them
views/     what a section shows, one file a view: numbers, their drawing, and both as blocks
canvas     what all drawings share
tables     the arms as rows, for the terminal and for a document
verdicts   the claims, each with its evidence
methods    how the numbers came about
appendix   every run, where links lead
document   the blocks that a report is made of
html       a document as one page
markdown   a document as a text
exports    numbers as CSV
report     all of it together
writing    all files or none
"""

import os
from pathlib import Path

# Before Matplotlib is imported, wherever that happens first: its caches belong into the folder one works in.
os.environ.setdefault("MPLCONFIGDIR", str(Path.cwd() / ".cache" / "matplotlib"))
