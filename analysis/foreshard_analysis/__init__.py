"""Reads Foreshard's traces, by src/trace/SCHEMA.md alone, into pandas tables, figures and reports.

>>> from foreshard_analysis.trace_file import Trace
>>> from foreshard_analysis.events import load_events
>>> with Trace("trace.h5") as trace:
...     events = load_events(trace, rank=0)
"""
