"""What an author of steps writes against: `@node`, the types of slots, the context.

Read next: `define.py`, `io.py`, `context.py`, `builtin/`.
"""
