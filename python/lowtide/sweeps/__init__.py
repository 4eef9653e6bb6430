"""Plans of many graphs with many settings, on several cores or machines: see `lowtide.sweep`."""
