"""The conformance kit: which rules, which symbols, which prototypes, which results; of our libraries or another's.

Each command is a module: `add_arguments(parser)` and `run(options) -> exit status`.
"""
