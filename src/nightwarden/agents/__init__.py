"""The model side: which models there are, what they may cost, and how one is asked.

    models.py ─▶ a resolved model (name, address, key, price), or one clear reason why not
    budget.py ─▶ what a turn may cost, reserved before it begins
    adjudicator.py ─▶ the supervisor that asks a model
    consulting.py ─▶ one question now and then: what supervisors over running agents think with
    stepping.py ─▶ models for steps: `ctx.model`, and the nodes of `llm.*`
    laboring.py ─▶ a model at work with tools: `ctx.work`, and the nodes of `agent.*`

Libraries of the model providers are imported when the first question is asked, never before:
`metering.py`, `patient.py`, `building.py`, `conversation.py`, `trouble.py`, `turns.py`,
`asking.py`, `laboring.py` and `toolset.py` hold all such imports, and nothing outside this
package imports those.

Read next: `models.py`, `adjudicator.py`.
"""
