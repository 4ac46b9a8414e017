"""Many runs on all cores, each kept as soon as it is finished. Needs the standard library and what belongs to all."""
