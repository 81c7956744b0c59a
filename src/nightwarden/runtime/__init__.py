"""Who does it: the kernel's orders become work here, on one event loop, and what came of it facts.

    the loop         driver ★ · desk (what all calls share) · instances · feeding · controlling
    plain calls      plain · pool
    streaming calls  stream_calls · streaming · streams · frames · untold · step_clock
    one call         binding · needs · copying · accounting · executors/
    what a step has  context · services · assets · secrets · paying · telling · mail
    what is said     bus · recording · keeping · narrating · watching · log_masking
    what breaks      failing · recognising · failures
    who decides      deciding · bounded · patience · sticky · answers · substitution · supervisors/
    what is read     supervision · evidence · ancestry · patching
    a resumed run    past_folding · past · risks · replaying · playback · recorded · again

Read next: `driver.py`.
"""
