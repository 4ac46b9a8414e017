"""`crashbo benchmark`: the campaign, and its report in words, tables and figures. May import every other layer."""
