"""The exceptions of the engine.  Each message is one sentence: what, which value, what to do.
Boundary: this file imports nothing; every other module may import it."""


class StageScopeError(Exception):
    """Base of all errors whose text may be shown to a user as it is."""


class BadInput(StageScopeError):
    """A value given by the user cannot be used."""


class DatasetError(BadInput):
    """A dataset root or its JSON cannot be read as a dataset."""


class MediaError(BadInput):
    """A file of a sample is missing, broken or refused."""


class SettingsError(BadInput):
    """A setting has a value that cannot be used."""


class UnknownModel(BadInput):
    """The name is not in models.toml."""


class ContextTooLong(BadInput):
    """The request does not fit into the model's context."""


class ModelUnavailable(StageScopeError):
    """The checkpoint cannot be loaded on this machine."""


class DownloadFailed(StageScopeError):
    """A checkpoint could not be downloaded from the hub."""


class OutOfMemory(StageScopeError):
    """A run needed more memory than its device had left."""


class ServerFailed(StageScopeError):
    """A served model did not answer, or not in the form of its protocol."""


class ServerAway(ServerFailed):
    """A server cannot be reached, or takes no request at all: nothing was asked."""


class NotFinite(StageScopeError):
    """A model's logits are NaN or infinite."""


class CacheError(StageScopeError):
    """The feature cache cannot be read or written."""


class StoreError(StageScopeError):
    """A run folder cannot be read, written or resumed."""


class ClusterError(StageScopeError):
    """A Ray cluster cannot take work, or was lost."""


class Cancelled(StageScopeError):
    """The run was stopped between two tokens or two stages."""
