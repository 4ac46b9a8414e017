"""A second look at a study: what in its data speaks against its model, kind by kind. `everything` asks them all."""
