"""What a verb does to an object: the operation classes of activities, and the verbs of English that ask for them."""

from collections.abc import Mapping
from functools import lru_cache

from lemminflect import getAllLemmas

UNKNOWN = "other"
# Each class with the verbs that ask for it; a verb may stand in several classes, and its first one is the usual one.
_VERBS: Mapping[str, str] = {
    "create": "create add make open post send submit insert new generate set write produce draft compose build raise file log "
    "schedule book register publish push append attach put upload enter introduce establish start launch "
    "initiate record compile prepare provision instantiate save store notify email mail message alert inform "
    "announce report share assign invite issue issu duplicate copy clone reply respond comment subscribe plan "
    "arrange organize organise apply include request order tag label ping tell remind announce broadcast text hire "
    "onboard enroll enrol",
    "retrieve": "retrieve get fetch list find look check search read show see view obtain pull collect gather query "
    "load return access extract acquire browse display pick identify review grab lookup locate inspect scan "
    "select receive monitor examine request",
    "update": "update change modify edit set rename adjust alter revise upsert mark assign close resolve fix correct "
    "refresh complete reopen move amend reset patch replace move archive convert transition switch "
    "increase decrease enrich append overwrite override enable disable activate deactivate reschedule",
    "delete": "delete remove cancel drop erase kill destroy discard clear purge eliminate revoke unsubscribe clean trash",
    "upsert": "upsert upload put save store",
    "download": "download export save",
    "copy": "copy duplicate clone replicate",
    "move": "move transfer relocate",
    "rename": "rename",
    "invoke": "invoke call run execute trigger",
    "publish": "publish send push notify broadcast",
    "put": "put add push enqueue send",
    "purge": "purge empty clear flush",
    "share": "share",
    "send": "send email mail write notify inform alert message forward",
    "redact": "redact",
    "add": "add",
    "append": "append add",
    "upload": "upload attach add",
    "invite": "invite add",
}
# Classes that a description's verb may stand for, so that "Send a message" is one with "create_message".
_CLASS_OF_WORD: Mapping[str, str] = {
    "retrieves": "retrieve",
    "allows": "update",
    "creates": "create",
    "sends": "send",
    "invokes": "invoke",
    "select": "update",
    "sendoutlook": "send",
    "downloadfile": "download",
    "downloadfilecontent": "download",
    "downloadlistitemattachment": "download",
    "copyfile": "copy",
    "copyfolder": "copy",
    "movefolder": "move",
    "renamefolder": "rename",
    "renamefile": "rename",
    "uploadattachment": "upload",
    "invokefunction": "invoke",
    "publishmessageontopic": "publish",
    "putmessage": "put",
    "purgequeue": "purge",
    "getcurrentuser": "retrieve",
    "shareprojectwithgroup": "share",
    "addleadtolist": "add",
}


@lru_cache(maxsize=8192)
def lemma_of_verb(word: str) -> str:
    """Returns the base form of a verb in lower case; the word itself where it can be no verb."""
    word = word.lower()
    return next(iter(getAllLemmas(word, upos="VERB").get("VERB", (word,))), word)


@lru_cache(maxsize=8192)
def operations_of_verb(word: str) -> tuple[str, ...]:
    """Returns the classes that a verb may ask for, the usual one first; empty where the verb asks for none of them."""
    lemma = lemma_of_verb(word)
    operations = [name for name, verbs in _VERBS.items() if lemma in verbs.split()]
    return tuple(sorted(operations, key=lambda name: (lemma != name, _VERBS[name].split().index(lemma))))


def operation_of_verb(word: str) -> str:
    """Returns the class of an activity whose id or description states this verb; `UNKNOWN` where there is none."""
    word = word.lower()
    if word in _VERBS:
        return word
    if word in _CLASS_OF_WORD:
        return _CLASS_OF_WORD[word]
    for name in ("download", "copy", "move", "rename", "upload", "invoke", "publish", "purge", "share", "send"):
        if word.startswith(name):
            return name
    return next(iter(operations_of_verb(word)), UNKNOWN)


def operation_of(description: str) -> str:
    """Returns the class of the description's first word."""
    words = description.split()
    return operation_of_verb(words[0]) if words else UNKNOWN
