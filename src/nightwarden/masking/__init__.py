"""What keeps secrets out of every record, and records readable: mask first, cut after.

Pure: values in, values out. Knows nothing of runs, steps or supervisors.

Read next: `redaction.py`.
"""
