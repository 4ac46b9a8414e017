"""Trials as tables, out and in: CSV files, data frames, lists of dicts.

May import strategies and below.

| file | holds |
|---|---|
| columns | the columns of a table of trials, and a trial's value in each |
| cells | what stands in a cell that somebody else wrote |
| sheets | tables as they come, their columns named as ours |
| rows | rows, read as trials |
| old_data | what was understood of a table, and what is wrong with it, before any of it is told |
"""
