"""Fault-injection suites: how good a supervisor is, in numbers.

    case ─▶ a real run with a fault in it ─▶ what was decided, what came of it ─▶ score ─▶ gates

A case is a small workflow with something wrong, and a label: how the run should end, which
answers are right, which do harm. Nothing of a case is mocked but its outside: the engine is the
real one, on virtual time unless a model has to be waited for.

Read next: `case.py`, `playing.py`, `scoring.py`.
"""
