"""The quadruped Solo8 that learns to jump, in a physics simulation.

May import the public API, from the modules that define it.

robot    the model: bodies, joints, contact    motors   currents, torques, voltages
plan     where the joints should be            jump     one jump, step by step
problem  the jump as a problem to be tuned     camera   pictures of a jump
engine   the only import of MuJoCo, loaded when the first jump is simulated
"""
