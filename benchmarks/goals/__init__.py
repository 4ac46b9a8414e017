"""Several goals and crashes that give no data: crashbo beside Optuna's samplers and a BoTorch loop. Run as a module."""
