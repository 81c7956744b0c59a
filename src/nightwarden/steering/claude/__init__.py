"""Raw Claude Code sessions: hooks, the drain, the mailbox in files, the transcript.

Nothing is imported here: the drain has to start at once.

Read next: `drain.py`, `transcript.py`.
"""
