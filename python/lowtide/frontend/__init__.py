"""The common code of all front ends (PyTorch and ONNX today; later JAX).  Imports no framework.

* draft.py: a graph under construction.  price.py: prices of kernels.
* program.py: a training step as the planner sees it.  options.py: the planner's options.
* techniques.py: options about techniques.  errors.py: errors and warnings.  roofline.py: devices.
* planning/: a program and a budget -> the schedule of the generated code, and a report.
"""
