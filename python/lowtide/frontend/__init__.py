"""What every front end shares: PyTorch today; JAX, ONNX and HLO read other things into the same.  Imports no framework.

* draft.py: a graph under construction.  price.py: what kernels cost.
* program.py: a step as planners see it, whatever runs it.  options.py: what a user may ask of a planner.
* techniques.py: what users say about techniques.  errors.py: what goes wrong, in words for people.  roofline.py: devices.
* planning/: a program and a budget -> the schedule that its code runs, and a report of it.
"""
