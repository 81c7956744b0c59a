"""Claude Code as an agent: a program that works by itself, watched, paid for and held in.

    task ─▶ working.py ─▶ the program (program.py) ─▶ proxy.py ─▶ the provider
                 ▲                │ what it says             │ nothing it cannot pay for
                 └─ saying.py ◀───┘                bounding.py

`claude-agent-sdk` is imported in `working.py` only, when the first such step runs.
"""
