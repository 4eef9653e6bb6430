"""Time of one kernel on a named device, from a roofline model; nothing is measured.

The devices and the formula are the core's: see `lowtide.devices` and src/lowtide/device/roofline.h.
"""

import lowtide
from lowtide._core import _collective_ns as collective_ns
from lowtide._core import _kernel_ns as kernel_ns

__all__ = ["DEVICES", "collective_ns", "kernel_ns"]

DEVICES = {device.name: device for device in lowtide.devices()}
