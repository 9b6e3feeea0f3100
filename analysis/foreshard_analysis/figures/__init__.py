"""Figures, each a pure function of tables: no file is read or written, no state of matplotlib is changed."""
