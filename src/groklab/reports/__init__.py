"""Reports: what tested functions computed, as tables, figures and a document.

series     one arm: median, intervals, ratio to the reference, curves with bands
answer     what the numbers say, in sentences that do not say more than the numbers
wording    numbers as people read them
tables     the rows, for the terminal and for Markdown, and as CSV
figures    drawing alone
markdown   the document
writing    all files or none
"""

import os
from pathlib import Path

# Before Matplotlib is imported, wherever that happens first: its caches belong into the folder one works in.
os.environ.setdefault("MPLCONFIGDIR", str(Path.cwd() / ".cache" / "matplotlib"))
