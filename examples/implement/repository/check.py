"""Says what is wrong with dates.py: `python3 check.py`; 0 when nothing is."""

import sys

from dates import month_end

EXPECTED = {
    (2026, 1): 31,
    (2026, 2): 28,
    (2028, 2): 29,
    (2000, 2): 29,
    (2100, 2): 28,
    (2026, 4): 30,
    (2026, 7): 31,
    (2026, 8): 31,
    (2026, 9): 30,
    (2026, 12): 31,
}

wrong = 0
for (year, month), days in EXPECTED.items():
    found = month_end(year, month)
    if found != days:
        wrong += 1
        print(f"month_end({year}, {month}) is {found}, expected {days}")
print(f"{wrong} of {len(EXPECTED)} wrong")
sys.exit(1 if wrong else 0)
