"""What kind of failure an error is, and when it may be tried again: words, never message text.

Read next: `signature.py`.
"""
