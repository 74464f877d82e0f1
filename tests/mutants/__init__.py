"""Which plausible mistakes do the tests not notice? ``python -m tests.mutants --sample 100 --seed 1``.

A mutant is the package with one small mistake in it: a boundary off by one, an operand or a statement left out, two
statements swapped, ``popleft`` for ``pop``. The hunt draws a seeded sample of them, puts one after the other into a
temporary copy of the tree and runs the tests around it: the mirrored tests of the module first, then those of its
neighbours, then those of its whole part (see `neighbours`). A mutant that no test notices is a promise without a test,
or code without a purpose.

With ``--broker`` a mutant of ``transport/pulsar`` that got by all of them must also pass by the tests on a real broker:
its mirrored ones, those of the contract of all transports, then those of its whole part. One broker serves the hunt:
one that it starts, or that ``JMSAIO_TEST_SERVICE_URL`` and ``JMSAIO_TEST_WEB_URL`` name.

Why not a library: cosmic-ray 8 has one test command for all modules, no operator that drops a statement, and mutates
the files in place. mutmut 3 replaces each function with a trampoline and first runs all tests to learn which of them
reach it; all tests of this project start brokers and take minutes. Neither draws a sample. What both would leave to
do here, choosing the tests and the sample, is most of this package.
"""
