"""The steps that are built in: a module a family, and its parts beside it with a `_` before.

`flow` and `data` are the words of the engine; the others reach out: files, pages, feeds, models.

Read next: `flow.py`, `data.py`.
"""
