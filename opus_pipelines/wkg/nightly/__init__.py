"""Nightly: the steps of a rebuild, each of which finds in the lake what earlier steps left there, and leaves its own.

So each step can run in a process of its own, again after a failure, or alone. In: the lake, the settings, what earlier
steps staged in `<lake>/.staged`. Out: the records of the step, staged or published. Doors: `steps.read`, `steps.mine`,
`steps.check_mined`, `steps.embed`, `steps.check_embedded`, `steps.publish`.
"""
