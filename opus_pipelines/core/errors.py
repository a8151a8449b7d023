"""The errors a person is meant to read: what, which one, and what to do. The command line prints them without a trace."""


class OpusError(Exception):
    """Base of every error with a message for a person."""


class SettingsError(OpusError, ValueError):
    """A settings file or variable says something that cannot be followed."""


class InputError(OpusError, ValueError):
    """A file or record of history, or an intake, cannot be used."""


class LakeError(OpusError, RuntimeError):
    """The lake lacks what was asked for, or is held by another run."""


class CheckFailed(OpusError, RuntimeError):
    """A blocking check failed: nothing was published."""


class WorkflowError(OpusError, ValueError):
    """A workflow, or something that should become one, is not well formed."""


class PluginError(OpusError, RuntimeError):
    """An installed distribution declares an extension that cannot be used."""
