"""What a run is: graph, types, scopes, checks, loading and building. Pure: text in, records out.

    load.py      load, examine, python_files     a file's text to a Workflow
    build.py     workflow                        Python to a Workflow
    check.py     check                           everything wrong with a Workflow
    workflow.py  Workflow and its parts          catalog.py   NodeType and its slots
    scopes.py    analyse                         types.py     parse_type, type_text
    checker.py   Checker                         schema.py    workflow_schema
    draw.py      graph_text                      svg.py       graph_svg

Nothing is imported here: a step's module needs `catalog.py` and `types.py`, and should not
wait for the rest. Read next: `catalog.py`, `workflow.py`, `load.py`.
"""
