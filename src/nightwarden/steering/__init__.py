"""Over running agents: who watches one, and now and then says a word it reads at its next turn.

    Observer ─▶ Trigger ─▶ Evaluator ─▶ Injector
     events      when        a model      a text in the mailbox

That word is all the power there is: nothing here pauses, edits, pays from the run's budget, or
fails a run. `trigger.py` decides when to look and takes the time as a number; one task of
`coordinator.py` a supervisor owns its state.

Nothing is imported here: the drain command of a Claude Code session has to start at once.

Read next: `ports.py`, `trigger.py`, `coordinator.py`.
"""
