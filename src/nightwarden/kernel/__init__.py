"""What a run means: facts in, orders out, with nothing awaited and nothing outside touched.

    the door         machine ★ (facts in, orders out) · asked (questions) · stimuli · effects
    before a run     compiling · plan · assembly · state
    values           routing · matching · propagating · tasks · emitting
    items that end   closing · causes · ledger
    streams          reading · waiting
    nodes of its own engine (Zip, Cross, Loop) · control (who controls whom)
    what breaks      escalating · allowed · applying · stopping

Read next: `machine.py`.
"""
