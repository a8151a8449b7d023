"""The errors whose message a person reads: what is wrong, where, and what to do.

The CLI prints them without a traceback.
"""

STOPPED = "stopped; what was published before stays as it is"  # the line of whoever pressed Ctrl-C


class OpusError(Exception):
    """Base of every error with a message for a person."""


class SettingsError(OpusError, ValueError):
    """A settings file or variable has an unknown key or an impossible value."""


class InputError(OpusError, ValueError):
    """A file or record of history, or an intake, cannot be used."""


class LakeError(OpusError, RuntimeError):
    """The lake lacks something, its disk is full, or another run holds it (LakeHeld)."""


class LakeHeld(LakeError):
    """Another run holds the lake."""


class CheckFailed(OpusError, RuntimeError):
    """A blocking check failed, so nothing was published."""


class WorkflowError(OpusError, ValueError):
    """A workflow, or its description, is not well formed."""


class PluginError(OpusError, RuntimeError):
    """An installed distribution declares an extension that cannot be used."""
