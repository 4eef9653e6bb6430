"""Messages for errors while a step of PyTorch runs."""


class UpdateError(RuntimeError):
    """Updates in the backward would differ from those of an ordinary step; the text gives the reason and the remedy."""


class WrittenError(RuntimeError):
    """A tensor that the backward reads was changed after the forward; the text names it and the remedy."""


class DoubleBackwardError(RuntimeError):
    """A backward of a backward; the text says how the model can be written without."""


class UnknownParameter(ValueError):
    """A parameter that a step would train, and no optimizer knows; the text names it."""
