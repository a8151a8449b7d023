"""Writes what people say as imperatives in the order in which their steps are done, before clauses are read.

First the phrasings of talk become plain sentences: "I need a board with an item on it" → create a board and an item;
"status solved? Then …" → if status is solved, …; "let the team know" → notify the team. Then each sentence is
rewritten: "send a message after creating the issue" → create the issue, then send a message; "the file should be
stored" → store the file; "send each member a mail" → for each member, send a mail.
"""

import re
from collections.abc import Callable, Collection, Sequence
from itertools import count

from lemminflect import getAllLemmas

from opus_pipelines.flows.text import clause_words as lexicon
from opus_pipelines.flows.text.operations import lemma_of_verb, operations_of_verb
from opus_pipelines.language.grammar.modality import is_base

_START = r"(?:^|(?<=[.;!?] ))"  # of a sentence
_PHRASE = r"(?:[^,.;!?\"]|\.(?=\w))"
_VALUE = r"(?:\"[^\"]*\"|[\w.-]+)"
_ARTICLE = r"(?:an?|another|one|some|new)"
_REST = r"(?:rest|others|remaining (?:ones|\w+s)|other (?:ones|\w+s))(?: of (?:them|those|these))?"
# Verbs of two or three words, and the verb that they stand for
_PHRASAL = {
    r"spin(?:ning)? up": "create",
    r"set(?:ting)? up": "create",
    r"put(?:ting)? together": "create",
    r"kick(?:ing)? off": "start",
    r"get(?:ting)? rid of": "delete",
    r"kill(?:ing)? off": "delete",
    r"throw(?:ing)? (?:away|out)": "delete",
    r"(?:go(?:ing)? over|look(?:ing)? through) (?:all )?the": "go through the",
}
_PERSON = (
    r"(?:IT|HR|legal|finance|accounting|security|facilities|procurement|somebody|someone|"
    r"(?:the|an?|our|my|their|his|her) (?!flow|system|workflow|automation|process|rest|others)[\w' -]{2,40}?)"
)
_ONES = r"(?:all )?(?:of )?(?:those|the ones|the one|any|anything|everything)"
_ALL_DONE = (
    r"(?:when|once|after) (?:it|that|this|everything|all(?: of (?:this|that|it))?)(?:'s| is| are| has been)?(?: all)? "
    r"(?:done|finished|complete|completed|over|through)\b"
)
_NUMBER = r"[$€£]?\d[\d,]*(?:\.\d+)?\s?(?:k\b|%)?"
_BEGINS = rf"({_START}|[,;] (?:and |but |then )*|\b(?:and|then|but|after) )"  # of a clause
_NEGATED = r"(?:(?:please )?(?:do not|don't|never) \w+|keep|leave(?: out)?|not|spare|skip)"


def _plain_verb(match: re.Match[str]) -> str:
    """What a pronoun or the flow does as an imperative: "then it sends a mail" → then send a mail."""
    lemma = lemma_of_verb(match[2])
    return f"{match[1]}{lemma} " if lemma != match[2].lower() and operations_of_verb(lemma) else match[0]


def _without_like(match: re.Match[str]) -> str:
    verb = match[1].lower()
    return f"{match[1]} " if verb == "do" or (is_base(verb) and operations_of_verb(verb)) else match[0]


# Words of talk that say nothing, and what is asked politely or told of the flow itself
_TALK: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"\b(do|does|did|is|are|was|has|have|should|must|could|would)nt\b", r"\1n't"),
    (r"\b(you|they)re\b", r"\1 are"),
    (r"(,?) *\b(?:u+h+|u+m+|er+m?|hm+|you know|i mean|if you will)\b,?", r"\1"),
    (r"^ +", ""),
    (r"\b(that|it|who|which|there)'?s (?=not\b|no\b|still\b|\w+ed\b)", r"\1 is "),
    (r"\b(?:has|have)(?: not|n't)(?: got)? (?:an?|any) ", "has no "),
    (r"\s*\([^()]* (?:is|are|was|were) [^()]*\)", ""),
    (r"\s[-–—]+\s", ", "),
    (r"(?:^|(?<=\w ))like (\w+) (?=(?:one|an?|the|it|them)\b)", _without_like),
    (r"(?<=\bfirst )you (?=\w)", ""),
    (
        rf"({_START}|[,;] |\b(?:and|but|then) ),? *(?:(?:(?:okay|ok|so(?! that\b)|basically|actually|oh|alright|yeah|nah|hi|hello|"
        r"hey)\b[ ,!]+|(?:well|right|look|listen|like|lovely)\b *, *))+",
        r"\1",
    ),
    (
        r",? *\b(?:just )?(?:(?:to be|be) (?:on the )?(?:safe|sure|clear|precise|fair|honest)(?: side)?|as (?:usual|always|agreed|discussed)|"
        r"for (?:good measure|safety|completeness)|if (?:at all )?possible|of course|needless to say|by the way|so to speak)(?=[.,;]|$),?",
        ",",
    ),
    (rf"{_BEGINS}(?:can|could|shall|would|will) (?:i|we|you) (?:please |just |also )*", r"\1"),
    (
        rf"{_BEGINS}(?:what (?:i|we) (?:need|want|would like) is,? (?:for you to |that you |to )?|please to (?=\w)|"
        r"it is (?:needed|necessary|required|important) (?:to|that) |(?:i|we) (?:would like|want|wish) that (?:you |we )?)",
        r"\1",
    ),
    (
        rf"{_BEGINS}(?:you|we|i|it|(?:the|this) (?:flow|system|workflow|automation|bot))(?:'d| would)? (?:(?:also|then) )?(?:(?:should|must|will|"
        r"has to|have to|needs? to|want to|like to)\b(?: to\b| also\b| then\b)*) (?!be\b|not\b|have\b|go\b)(?=\w)",
        r"\1",
    ),
    (
        rf"{_BEGINS}(?:he|she|it|then it|the (?:flow|system|bot)) (?:then |also )?(\w+s) (?=(?:an?|the|its|his|her|their|it|them)\b)",
        _plain_verb,
    ),
)
_REWRITES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    *_TALK,
    # what is said of a part alone: "above 50k also mail the boss", "anything over 10k gets a task"
    (
        rf"({_START}|[,;:] (?:and |but )?|\band )(above|over|under|below|more than|less than|at least) ({_NUMBER}),? (?:also )?(?=\w)",
        r"\1if its amount is \2 \3, ",
    ),
    (
        rf"({_START}|[,;] (?:and |otherwise,? )?)(?:any|every|each|all(?: of)?(?: the)?) ({_PHRASE}{{3,60}}?) (?:should|must|has to|have to|needs? to|"
        rf"will|shall|is to|are to) be (\w+(?:ed|en|nt))(?: by ({_PERSON}(?=[,;.]|$)))?",
        lambda match: (
            f"{match[1]}for each {match[2]}, "
            + (f"have {match[4]} {lemma_of_verb(match[3])} it" if match[4] else f"{lemma_of_verb(match[3])} it")
        ),
    ),
    (rf"(?<=, )should ((?:the|its?|their|this|that|any|there)\b{_PHRASE}{{0,40}}?) be ", r"if \1 is "),
    (r"\b(?:as (?:to|for|regards)|regarding) (?=(?:each|every|all)\b)", "for "),
    (rf"\bon the ones (?=marked |flagged |that |which |with |whose ){_PHRASE}*?", "for the ones "),
    (r"\bfailing that\b", "otherwise"),
    (
        r"(?:when|once|after) (?:(?:you|we) are )?(?:through|done|finished)(?: with)?(?: the whole (?:list|lot)| (?:all of )?them(?: all)?| everything)\b,?|\bafter all of them\b,?",
        "finally",
    ),
    (r"\bfor (?:all|any|every) (?:the |of the )?other \w+,? *", "otherwise "),
    (r"\b(?:every|each) time\b", "whenever"),
    (
        r"\b(?:repeat|continue|keep (?:on )?(?:going|doing (?:this|so|it))|do (?:this|it))(?: this| it)? (?=until\b|while\b)",
        "",
    ),
    (r"\b(?:in case of|upon|on) (?:an? )?(?:approval|yes)\b,?", "if it is approved,"),
    (r"\b(?:whereas )?(?:in case of|upon|on) (?:an? )?(?:rejection|no)\b,?", "if it is rejected,"),
    (rf"{_START}should (?=(?:the|its?|their|this|that|any|there)\b)", "if "),
    (
        r"(?<!a )(?<!the )\btext (?=(?:the|their|its|his|her|our|my|each|every|all|them|him|us)\b)",
        "send a text message to ",
    ),
    (r"\bkeep (?:on )?\w+ing until\b", "until"),
    (r"\bkeep (?:on )?(\w+ing) ", lambda match: f"{lemma_of_verb(match[1])} "),
    (rf"{_START}yes\? (?:then )?", "if it is approved, "),
    (rf"((?:{_START}|[,;] |\band )(?:then )?)per (\w+),? ", r"\1for each \2, "),
    (r",? *\b(?:(\w+) (?:by|after) (?:\1|the other|another)|in a loop)\b,?(?= *\w)", ", for each of them, "),
    (r"\b(?:goes wrong|throws an? (?:error|exception))\b", "fails"),
    (
        r"\b(?:take|go (?:over|through)|handle|process|work through) (?:all of )?(?:them|these|those|each) one "
        r"(?:at a time|by one|after (?:the other|another)),?(?: and)?\b",
        "for each of them,",
    ),
    (r"\b(?:in case of|upon|on) (?:an? )?(?:error|failure)\b,?", "if it fails,"),
    (r"\s(?:->|=>|>>|→|⇒|\+)\s", ", "),
    # what has happened before the flow begins
    (
        rf"{_START}({_PHRASE}{{2,60}}?) (?:just )?(?:came|comes|has come|arrived|arrives|has arrived) ?(?:in)? *[:;-] *",
        r"when \1 arrives, ",
    ),
    (
        rf"\b(?:once|after|as soon as) ({_PHRASE}{{2,40}}?) (?:is|are|has been) (?=(?:in|on|at) )",
        r"after \1 is created ",
    ),
    (rf"(?:,| and| then)* (?:also |then )?((?:(?! and )[^,.;:])+?),? {_ALL_DONE}", r". Finally \1"),
    (rf"{_START}{_ALL_DONE},? ", "Finally "),
    (r"\bif exists? ((?:the|an?) [^,]{2,60}),", r"if \1 exists,"),
    # who does it
    (
        rf"({_START}|, (?:and |then |otherwise )?| and )(?:also )?({_PERSON}) (?:should|must|has to|have to|needs to|need to|will) (?!be\b|only\b|not\b|go\b)(?=\w)",
        r"\1have \2 ",
    ),
    # what is taken, and what is left
    (
        rf"\b(?:take|grab) (?:only )?(?=(?:all|each|every|the|my|our)\b{_PHRASE}{{2,40}}? (?:from|out of|in)\b)",
        "retrieve ",
    ),
    (
        rf"(?:,? but {_NEGATED}|,? except(?: for)?|,? apart from|,? other than) {_ONES} "
        r"(?:(?:that|which) (?:are|is) |marked (?:as )?|flagged (?:as )?|tagged (?:as )?)?(?!who|whose|with)",
        " that are not ",
    ),
    (r",? but (?:keep|leave|spare|skip) the (\w+)(?: ones?)?(?=$|[.,;])", r" that are not \1"),
    (
        rf"\b(?:for |with )?{_ONES}(?: that are| which are)? (above|over|below|under|more than|less than|at least) ({_NUMBER}),? ",
        r"if its amount is \1 \2, ",
    ),
    (
        rf"\bfor (?:everyone|everybody|each one|all|those) (?:in|from|of) the ({_VALUE}) (department|team|group|region)\b,? *",
        r"for each one whose \2 is \1, ",
    ),
    (
        rf"\b{_ONES} (?:with|of|in) (?:an? |the )?(\w+) ({_VALUE}) (?:should )?(?:needs?|gets?|requires?|receives?|have) (?=an? )",
        r"if its \1 is \2, create ",
    ),
    (rf"(?:[,;.]|\band)? *\bthe {_REST} (?:can|should|must|will|may) be ", ", otherwise it should be "),
    # "When onboarding somebody, create …": what the flow is for, and no condition
    (rf"{_START}(?:when|while|whenever) \w+ing\b{_PHRASE}*, *(?=\w)", ""),
    *((rf"\b{phrase}\b", verb) for phrase, verb in _PHRASAL.items()),
    (
        rf"\b(?:i|we|you|they)(?:'d| would)?(?: also)? (?:want|need|like|require)(?= {_ARTICLE} (?!list of))",
        "create",
    ),
    # what stands inside of something new is new, too
    (
        rf"\b(create|add|make|open) ({_ARTICLE} {_PHRASE}{{1,60}}?) with ({_ARTICLE} {_PHRASE}{{1,80}}?) "
        r"(?:in|on|inside|within|under) it\b",
        r"\1 \2 and \3",
    ),
    (rf"\blet ({_PHRASE}{{1,50}}?) know (?:with|by|via|through|in) (an?) ({_PHRASE}{{1,30}})", r"send \2 \3 to \1"),
    (rf"\blet ({_PHRASE}{{1,50}}?) know\b", r"notify \1"),
    (rf"\bdrop (it|them|(?:the|this) {_PHRASE}{{1,30}}?) (?:into|onto)\b", r"put \1 into"),
    (
        rf"\bif ((?:{_PHRASE}|\"[^\"]*\")+), *(?:then )?(?:we )?(?:do|does) nothing[,;.]? *(?:otherwise|else)\b,? *",
        r"unless \1, ",
    ),
    (rf"{_START}(?:is|are) ((?:the|its|their) \w+) ({_VALUE})\? *(?:if so|if yes|then|yes)\b,? *", r"if \1 is \2, "),
    (rf"{_START}(?:the )?(\w+) ({_VALUE})\? *(?:if so|if yes|then|yes)\b,? *", r"if the \1 is \2, "),
    (
        rf"\b(?:all )?(?:those|the ones|any) (?:whose|where the) (\w+) is ({_VALUE}) (?:gets?|receives?) (?=an? )",
        r"if its \1 is \2, create ",
    ),
    (rf"\b(?:the {_REST}|every(?:thing|one|body) else) (?:gets?|receives?) (?=an? )", "otherwise create "),
    (rf"\bfor (?:all )?(?:of )?the {_REST}\b,?", "otherwise"),
    (r"(?<=, )(?:gets?|receives?) (?=an? )", "create "),
    (r"\bfor (?:everyone|everybody|anyone|anybody) (?=in the [A-Z]|who\b|whose\b|that\b|with\b)", "for each user "),
)
_QUOTED = re.compile(r"\"[^\"]*\"")
_LIST = re.compile(r"\s*(?:[-*•]|\(?1[.)])\s")
_ITEM = re.compile(r"(?:^|[\s,;.]+)(?:[-*•]|\(?\d{1,2}[.)])\s+")
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), new) for pattern, new in _REWRITES)


def plain_talk(utterance: str) -> str:
    """Returns the utterance without words of talk that say nothing; quoted texts stay as they are."""
    return rephrased(utterance, len(_TALK))


def rephrased(utterance: str, most: int | None = None) -> str:
    """Returns the utterance with the wordings above replaced, the first `most` of them; quoted texts stay as they are."""
    quoted = _QUOTED.findall(utterance)
    number = count()
    utterance = _QUOTED.sub(lambda _: f'"{next(number)}"', utterance)
    if _LIST.match(utterance):
        utterance = _ITEM.sub(". ", utterance).lstrip(". ")
    for pattern, new in _COMPILED[:most]:
        utterance = pattern.sub(new, utterance)
    return _QUOTED.sub(lambda match: quoted[int(match[0][1:-1])], utterance)


_ORDINAL = frozenset(["first", "firstly", "beforehand"])
_FRAMES = frozenset(
    ["start", "begin", "finish", "end", "conclude", "close", "proceed", "continue", "follow", "starting"]
)
_AFTER = (("after",), ("following",), ("once",), ("as", "soon", "as"), ("upon",))
_BEFORE = (("before",), ("prior", "to"))
_MODALS = frozenset(["should", "must", "will", "shall", "needs", "need", "has", "have", "is", "are"])
_PASSIVE = frozenset(["is", "are", "gets", "get", "was", "were"])
_BREAKS = frozenset([",", "and", "then", "but", ":"])
_OPENING = lexicon.CONDITION_WORDS | {"until", "while"}
_CHECK = re.compile(r"\b(?:check|see|verify|determine|find out|test)(?: to see)? (?:if|whether)\b")
_SO = re.compile(
    r"^(?:if|when) (?:so|yes|true|that is the case|that's the case)\b ?,?|^(?:if|when) (?:it does|it is|they do|they are)(?: ,|$)|^in that case\b ?,?"
)
_NOT_SO = re.compile(r"\bif not so\b|\bif (?:that|this) is not the case\b")
_SPEAKING = frozenset(
    ["email", "mail", "notify", "message", "inform", "alert", "remind", "contact", "text", "call", "ping"]
)
_NO_OBJECT = frozenset(["it", "this", "that", "they", "these", "everything", "all"])


_OF_THEM = tuple(["of", pronoun] for pronoun in ("them", "these", "those"))


def rewritten(sentences: Sequence[list[str]], applications: Collection[str] = ()) -> list[list[str]]:
    """Returns the sentences as imperatives in the order of their steps.

    `applications` are names in lower case, written as one word, whose "and" does not separate anything.
    """
    sentences_found: list[list[str]] = []
    for number, words in enumerate(sentences):
        plain = joined_names(words, applications)
        text = " ".join(plain)
        match = _SO.match(text.lower())
        if match and sentences_found and any(word.lower() in lexicon.CONDITION_WORDS for word in sentences_found[-1]):
            sentences_found[-1] += [",", *text[match.end() :].split()]  # "check if it is so. If so, …"
            continue
        plain = _imperative_frame(_checked(_told_with(plain, applications)))
        plain = _indirect(_passives(_in_order(_by_doing(plain), sentences_found)))
        if number and plain and plain[0].lower() in _ORDINAL and not _counts(sentences):
            sentences_found.insert(0, plain[1:])
            continue
        if plain:
            sentences_found.append(plain)
    return [words for words in sentences_found if words]


def _counts(sentences: Sequence[list[str]]) -> bool:
    """Whether the sentences are numbered, so that "first" stands where it belongs."""
    return any(words and words[0].lower() in ("second", "secondly", "next") for words in sentences)


def joined_names(words: list[str], applications: Collection[str]) -> list[str]:
    """Returns the words with every name that contains "and" written as one word with underscores."""
    if not applications:
        return words
    for place, word in enumerate(words):
        if word.lower() != "and" or not 0 < place < len(words) - 1:
            continue
        for start in range(max(0, place - 4), place):
            for end in range(min(len(words), place + 3), place + 1, -1):
                if "".join(words[start:end]).lower() in applications:
                    return joined_names([*words[:start], "_".join(words[start:end]), *words[end:]], applications)
    return words


def _told_with(words: list[str], applications: Collection[str]) -> list[str]:
    """Reads an application as a verb: "slack the author" → send a message to the author in slack."""
    for place, word in enumerate(words[:-1]):
        opens = not place or words[place - 1].lower() in _BREAKS | lexicon.ADVERBS
        if opens and word.lower() in applications and words[place + 1].lower() in lexicon.DETERMINERS | {"me", "us"}:
            end = next((i for i in range(place + 1, len(words)) if words[i].lower() in _BREAKS), len(words))
            told = ["send", "a", "message", "to", *words[place + 1 : end], "in", word]
            return [*words[:place], *told, *_told_with(words[end:], applications)]
    return words


def is_gerund(word: str) -> bool:
    """Returns whether a word is the form in -ing of a verb."""
    return len(word) > 4 and word.lower().endswith("ing") and lemma_of_verb(word) != word.lower()


def is_participle(word: str) -> bool:
    """Returns whether a word may be the past participle of a verb that asks for an operation."""
    lower = word.lower()
    lemma = lemma_of_verb(lower)
    past = (lower.endswith(("ed", "en", "nt", "de", "ilt", "wn")) and lemma != lower) or lower in ("put", "set", "read")
    return past and bool(operations_of_verb(lemma)) and "VERB" in getAllLemmas(lower)


def imperatives(words: Sequence[str]) -> list[str]:
    """Returns a phrase in -ing as imperatives: "creating a task and sending it" → create a task and send it."""
    found = []
    for place, word in enumerate(words):
        starts = not place or words[place - 1].lower() in _BREAKS or words[place - 1].lower() in lexicon.ADVERBS
        found.append(lemma_of_verb(word) if starts and is_gerund(word) else word)
    return found


def _checked(words: list[str]) -> list[str]:
    """Replaces "check if" by "if" where more follows than the condition."""
    text = " ".join(words)
    match = _CHECK.search(text.lower())
    if match is None or text[: match.start()].strip().lower() in ("and do not", "don't", "do not"):
        return words
    return [*text[: match.start()].split(), "if", *text[match.end() :].split()]


def _imperative_frame(words: list[str]) -> list[str]:
    """Reads "finish by updating the topic" as "update the topic"."""
    lower = [word.lower() for word in words[:3]]
    if len(words) > 2 and lower[0] in _FRAMES and lower[1] in ("by", "with", "off") and is_gerund(words[2]):
        return imperatives(words[2:])
    return imperatives(words) if words and is_gerund(words[0]) and operations_of_verb(words[0]) else words


def _by_doing(words: list[str]) -> list[str]:
    """Reads "onboard a person by adding them and mailing them" as "add them and mail them"."""
    for place in range(2, len(words) - 1):
        doing = words[place + 1]
        if words[place].lower() == "by" and is_gerund(doing) and operations_of_verb(doing) and doing.lower() != "using":
            if any(word.lower() in lexicon.CONDITION_WORDS or word in (",", "and") for word in words[:place]):
                return words
            return imperatives(words[place + 1 :])
    return words


def _in_order(words: list[str], before: Sequence[list[str]]) -> list[str]:
    """Puts what is said to come before before what is said to come after."""
    for place in range(len(words)):
        for phrases, later in ((_AFTER, True), (_BEFORE, False)):
            size = next((len(p) for p in phrases if tuple(w.lower() for w in words[place : place + len(p)]) == p), 0)
            if not size or place + size >= len(words):
                continue
            begins = not place or words[place - 1] == "," or words[place - 1].lower() in ("and", "then", "but")
            end = (
                next((i for i in range(place + size, len(words)) if words[i] == ","), len(words))
                if begins
                else len(words)
            )
            anchor = _done(words[place + size : end])
            if anchor is None:
                continue
            lead, rest = words[:place], words[end + 1 :]
            while lead and lead[-1].lower() in _BREAKS:
                lead = lead[:-1]
            if begins and not rest:
                continue
            known = any(_same_verb(anchor, sentence) for sentence in before) or _same_verb(
                anchor, lead if begins else []
            )
            if not anchor or (known and anchor[1:2] and anchor[1].lower() in ("the", "it", "this", "that", "them")):
                return [*lead, *([","] if lead and rest else []), *rest] if begins else lead
            steps = [anchor, rest if begins else lead] if later else [rest if begins else lead, anchor]
            steps = [lead, *steps] if begins and lead else steps
            joined: list[str] = []
            for step in steps:
                joined += [",", "then", *step] if joined else list(step)
            return joined
    return words


def _done(words: Sequence[str]) -> list[str] | None:
    """What "creating the issue" or "the issue is created" does, as an imperative; empty for a pronoun or for "that is
    done"; None where the words say no such thing.
    """
    if not words:
        return None
    if is_gerund(words[0]):
        return imperatives(words)
    place = next(
        (i for i, word in enumerate(words) if word.lower() in _PASSIVE or word.lower() in ("has", "have")), None
    )
    if place is None or not place:
        return None
    rest = [word for word in words[place + 1 :] if word.lower() != "been"]
    acts = rest[1:2] and rest[1].lower() in lexicon.DETERMINERS and lemma_of_verb(rest[0]) != rest[0].lower()
    if acts and words[place].lower() in ("has", "have") and words[place + 1] == rest[0]:
        return ["have", *words[:place], lemma_of_verb(rest[0]), *rest[1:]]  # "the team has signed the contract"
    if rest and rest[0].lower() in ("done", "finished", "complete", "completed", "ready", "over"):
        return []
    if not rest or not is_participle(rest[0]):
        return None
    if words[0].lower() in _NO_OBJECT or (place == 1 and len(rest) == 1 and words[0].lower() in ("he", "she")):
        return []
    return [lemma_of_verb(rest[0]), *words[:place], *rest[1:]]


def _same_verb(anchor: Sequence[str], words: Sequence[str]) -> bool:
    return bool(anchor) and any(lemma_of_verb(word) == anchor[0] for word in words)


def _passives(words: list[str]) -> list[str]:
    """Reads "the file should be stored in a folder" as "store the file in a folder"."""
    start = 0
    for place in range(len(words)):
        word = words[place].lower()
        if word in _BREAKS:
            start = place + 1
            continue
        if word in lexicon.CONDITION_WORDS or word in ("while", "until", "that", "which", "whose", "who", "as"):
            if "," not in words[place:]:
                return words
            continue
        comma = max((i for i in range(place) if words[i] == ","), default=-1)
        if place == start or _OPENING & {w.lower() for w in words[comma + 1 : place]}:
            continue
        be, verb = place, place + 1
        if word in _MODALS:
            while verb < len(words) and words[verb].lower() in ("to", "also", "then", "be", "been", "not"):
                verb += 1
            if "be" not in [w.lower() for w in words[be:verb]] and word not in _PASSIVE:
                continue
            if "not" in [w.lower() for w in words[be:verb]]:
                continue
        elif word not in _PASSIVE:
            continue
        if verb < len(words) and is_participle(words[verb]) and not _has_verb(words[start:place]):
            while start < place - 1 and words[start].lower() in ("otherwise", "else", *lexicon.ADVERBS):
                start += 1
            subject = words[start:place]
            if subject[0].lower() in lexicon.PREPOSITIONS:
                continue
            done = [lemma_of_verb(words[verb]), *subject]
            return _passives([*words[:start], *done, *words[verb + 1 :]])
    return words


def _has_verb(words: Sequence[str]) -> bool:
    return bool(words) and bool(operations_of_verb(words[0])) and words[0].lower() not in lexicon.NOUNS


def _indirect(words: list[str]) -> list[str]:
    """Reads "send each member a mail" as "for each member, send a mail"."""
    for place in range(1, len(words)):
        if words[place].lower() not in ("each", "every") or place + 1 >= len(words):
            continue
        verb = words[place - 1]
        start = place - 1
        opens = not start or words[start - 1].lower() in _BREAKS or words[start - 1].lower() in lexicon.ADVERBS
        operations = operations_of_verb(verb)
        if not opens or not operations or operations[0] == "retrieve":
            continue
        stops = lexicon.DETERMINERS | lexicon.PREPOSITIONS | {",", "and", "then", "that", "which", "who", "whose"}
        end = place + 1
        while end < len(words) and (words[end].lower() not in stops or words[end].lower() in ("one", "new")):
            end += 1
        if [word.lower() for word in words[place + 1 : place + 3]] in _OF_THEM:
            end = place + 3
        elif words[end : end + 1] and words[end].lower() == "of":
            continue
        noun, rest = words[place + 1 : end], words[end:]
        if not noun or (rest and rest[0].lower() in ("that", "which", "who", "whose", "with")):
            continue
        header = [
            *words[:start],
            *(["and"] if start and words[start - 1] not in (",",) and words[start - 1].lower() not in _BREAKS else []),
        ]
        said = {"one"} & {word.lower() for word in noun}
        if (rest and rest[0].lower() in lexicon.DETERMINERS) or (lemma_of_verb(verb) in _SPEAKING and said):
            body = [verb, *rest]
        else:
            said |= {"of"} & {word.lower() for word in noun}
            body = [verb, "the", *noun, *rest] if not said else [verb, "it", *rest]
        return [*header, "for", "each", *noun, ",", *body]
    return words
