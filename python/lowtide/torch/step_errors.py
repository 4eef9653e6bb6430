"""What goes wrong while a step of PyTorch runs, in words for people."""


class UpdateError(RuntimeError):
    """A backward whose updates would not be those of an ordinary step; the text says why and what to do."""


class WrittenError(RuntimeError):
    """Somebody has written to what a backward reads since its forward; the text names it, and says what to do."""


class DoubleBackwardError(RuntimeError):
    """A backward of a backward; the text says how the model can be written without."""


class UnknownParameter(ValueError):
    """A parameter that a step would train, and no optimizer knows; the text names it."""
