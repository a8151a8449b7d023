"""Which words are verbs; whether a clause obliges, forbids, permits or describes; its phrase without modal words."""

import re
from functools import lru_cache
from itertools import pairwise

from lemminflect import getAllLemmas, getInflection

from opus_pipelines.language.grammar.figures import readable
from opus_pipelines.language.word_stems import stems, word_set

_FINITE_WORDS = (
    "is are was were am be has have had do does did will would shall should must can could may might "
    "cannot needs need isn't aren't"
)
FINITE = frozenset(_FINITE_WORDS.split())
_WORD = re.compile(r"[a-z][a-z'-]*")
_OTHER_WORDS = "see say thank thanks feel let hope imagine note tip please like mean bet be have do does may more most"
_OTHER_WORDS += " up down out off back near past even still well better best long total enjoy"
_NO_ORDERS = frozenset(_OTHER_WORDS.split())
_DETERMINERS = word_set("the a an its their his her it them all every each what that from to for")
_BEFORE_NOUNS = word_set("the a an all any its their your our these those")


@lru_cache(maxsize=8192)
def _lemmas(word: str) -> frozenset[str]:
    return frozenset(getAllLemmas(word, upos="VERB").get("VERB", ()))


@lru_cache(maxsize=8192)
def _is_noun(word: str) -> bool:
    return "NOUN" in getAllLemmas(word)


def is_base(word: str) -> bool:
    """Return whether the word may be a verb's base form: "verify", "check"."""
    return word in _lemmas(word) or ("-" in word and word.rpartition("-")[2] in _lemmas(word.rpartition("-")[2]))


def inflected(lemma: str, tag: str) -> tuple[str, ...]:
    """Return the forms of a verb by the tag of the Penn Treebank, of the dictionary's plain tables alone.

    For a lemma that is not in them, lemminflect would unpickle its file of rules: whoever writes it could run code.
    """
    forms: tuple[str, ...] = getInflection(lemma, tag=tag, inflect_oov=False)
    return forms


@lru_cache(maxsize=8192)
def is_participle(word: str) -> bool:
    """Return whether the word may be a past participle: "verified", "sent"."""
    return any(word in inflected(lemma, "VBN") for lemma in _lemmas(word))


@lru_cache(maxsize=8192)
def is_third_person(word: str) -> bool:
    """Return whether the word is a verb's third person and no plural of a noun: "explains", not "checks"."""
    return word.endswith("s") and any(word in inflected(lemma, "VBZ") for lemma in _lemmas(word)) and not _is_noun(word)


def lemma_of(word: str) -> str:
    """Return the base form of a verb: "inspect" of "inspected"; a word that is no verb as it is."""
    return min(_lemmas(word), key=lambda lemma: (lemma == word, len(lemma), lemma), default=word)


def may_be_third_person(word: str) -> bool:
    """Return whether the word may be a verb's third person: "checks"."""
    return word.endswith("s") and any(word in inflected(lemma, "VBZ") for lemma in _lemmas(word))


def words_in(text: str) -> list[str]:
    """Return the words of a lower-case text."""
    return _WORD.findall(text)


def is_finite(text: str) -> bool:
    """Return whether the text has a finite verb and is therefore a clause."""
    words = words_in(text)
    pronouns = any(w in ("we", "you", "they", "i") and is_base(after) for w, after in pairwise(words))
    return pronouns or any(w in FINITE or is_third_person(w) for w in words) or _has_verb_after_noun(words)


def _has_verb_after_noun(words: list[str]) -> bool:
    """Return whether a possible third person is between a noun and a determiner: "the clerk checks the file"."""
    return any(may_be_third_person(w) and following in _DETERMINERS for w, following in pairwise(words[1:]))


def _makes_a_noun(before: str) -> bool:
    """Return whether a noun follows the word: "the payer's edits"."""
    return before in _BEFORE_NOUNS or before.endswith(("'s", "s'"))


def _tells_of_several(words: list[str]) -> bool:
    """Return whether two nouns and then the verb begin the text: "school classes love the fog horn"."""
    match words:
        case [first, second, third, "the" | "a" | "an", *_]:
            return second.endswith("s") and _is_noun(first) and is_base(third)
    return False


def is_imperative(text: str) -> bool:
    """Return whether the text begins with a verb's base form and has no other finite verb: "check the seal"."""
    words = words_in(text)
    if (
        words[:1] in (["have"], ["get"])
        and words[1:2] in (["a"], ["an"], ["the"], ["another"])
        and any(is_base(w) for w in words[3:6])
    ):
        return True  # "have a second analyst review the results"
    if words[:1] == ["note"] and words[1:2] in (["it"], ["the"], ["down"], ["any"], ["all"]):
        return True
    if words[1:2] in (["or"], ["and"], ["of"]) and _is_noun(words[0]) and not is_base((words[2:3] or [""])[0]):
        return False  # "band or DJ"
    if not words or words[0] in _NO_ORDERS or not is_base(words[0]) or (len(words) > 1 and words[1] in FINITE):
        return False
    if _tells_of_several(words):
        return False
    main = re.split(
        r"\b(?:that|which|who|whom|whose|why|whether|if|what|how|where|when|because|so|until|before|after|while"
        r"|unless|as|than"
        r"|even)\b",
        text,
    )[0]
    following = pairwise(words_in(main))
    return not any(w in FINITE or (is_third_person(w) and not _makes_a_noun(before)) for before, w in following)


MUST = re.compile(
    r"\b(?:must|shall|should|ought to|ha(?:s|ve|d) (?:always |also |first )?to|needs? (?:always |also |first )?to"
    r"|(?:is|are) (?:always |first )?(?:obliged |required |expected |asked )?to(?= (?:be\b|[a-z]+\b))|(?:is"
    r"|are) responsible for(?= [a-z]+ing\b))"
    r"\b(?: (?:always|also|first|then|immediately|promptly|only))*(?: be\b)?(?: (?:always|also|first|then|immediately"
    r"|diligently"
    r"|promptly)\b)*"
)
NEVER = re.compile(
    r"\b(?:(?:must|shall|may|can|should|will|is|are)(?: be)? (?:not|never)(?: ever)?(?: be)?(?: to(?: be)?)?(?! later"
    r"| more"
    r"| always| necessarily| possible"
    r"| less| exceed)"
    r"|(?:(?<=^)|(?<=please )|(?<=, )|(?<=you ))do not(?! (?:have|need)\b)|(?:must|shall|may|we|you"
    r"|they) no longer(?: be allowed to| be)?|never"
    r"|(?:under no circumstances|in no case|on no account|at no time|in no event)(?: (?:may|must|shall|should|can|do"
    r"|does))?(?: you| we)?"
    r"|(?<!to )(?:refrain from|avoid|stop(?= [a-z]+ing\b)))\b(?: be\b)?"
)
PROHIBITED = re.compile(
    r"\b(?:is|are|be|remains?) (?:strictly |generally |expressly )?(?:forbidden|prohibited|banned|not (?:allowed"
    r"|permitted|admissible"
    r"|acceptable))\b"
)
REQUIRED = re.compile(
    r"\b(?:is|are) (?:always |also )?(?:required|mandatory|compulsory|obligatory|needed|necessary|a must)\b"
)
REQUIRES = re.compile(
    r"^(?P<what>.*?)\b(?:also )?(?:requires?|needs?|necessitates?|calls? for)(?: also)?\s+(?!to\b)(?:that )?(?P<a>.+)$"
)
ENSURE = re.compile(
    r"^(?:(?:\w+ ){0,4}(?:must|shall|should|has to|have to) )?(?:always )?(?:ensure|make sure|see to it|take care"
    r"|it must be ensured|it is (?:essential|important|vital|crucial|imperative))(?: that)?\s+"
)
SKIPPED = re.compile(
    r"\b(?:left out|leave out|leaving out|skip(?:ped|ping)?|omit(?:ted|ting)?|waive[sd]?|waiving|bypass(?:ed|ing)?"
    r"|forg[eo]t(?:ten|ting)?"
    r"|dispens(?:ed?|ing) with)\b"
)
FORGET = re.compile(r"^(?:please )?(?:do not|never) (?:forget|fail|neglect) to ")
PERMISSION = re.compile(
    r"\b(?:may|can|could|might|need not|(?:do|does) not (?:need\b|have to)|excluded|(?:not|never) (?:be )?(?:needed"
    r"|required|obliged"
    r"|necessary|mandatory)|no need"
    r"|optional(?:ly)?|voluntary|at (?:\w+ )?discretion|(?:is|are|remain|feel) (?:free|welcome|allowed|permitted"
    r"|entitled|able) to"
    r"|on request|exempt)\b"
)
NOT_ASKED = re.compile(r"\b(?:not|never) (?:be )?(?:required|obliged|expected|asked|necessary|needed)\b")
HEDGE = re.compile(
    r"\b(?:recommend\w*|consider(?:ing)?|ideally|where possible|if possible|would|nice to|suggest\w*|usually"
    r"|typically|generally"
    r"|normally|sometimes"
    r"|probably|maybe|perhaps|tends? to|often|mostly|likely|appears?|seems?|in most cases|in many|in some"
    r"|good practice|might"
    r"|on average|wish to"
    r"|it depends|for (?:example|instance)|e\.g\.|in theory|roughly|approximately|most of)\b|^most\b"
)
TELLING = re.compile(
    r"\b(?:means?\b(?! that)|shall have the meaning|is defined as|for the purposes of|appl(?:y|ies) to|lays? down"
    r"|sets out|describes?"
    r"|shall have (?:a|the) (?:right|period|option|possibility)|remain free|has the right|have the right|is based on"
    r"|are based on)\b"
    r"|^(?:i|we) (?:think|know|believe|hope|guess|was|were|had|understand|observed|tested|found|noted|completely)\b"
    r"|^it (?:is recogni[sz]ed|appears|seems)|^the (?:whole |entire )?(?:process|procedure|workflow|flow) (?:starts?"
    r"|begins?"
    r"|ends?|stops?|finishes"
    r"|is (?:started|triggered))\b|\b(?:need|have) to (?:talk|admit|apologi[sz]e|thank|discuss)\b|\b(?:any|have"
    r"|further) (?:questions?|doubts?)\b"
    r"|^(?:please )?(?:find (?:attached|enclosed|below)|excuse|remember that|keep in mind|bear in mind"
    r"|experience shows|welcome|get well)\b"
    r"|^there (?:is|are) (?:a |an |the |some |several )|\bthis (?:should|must) (?:help|be)\b|\bif all goes well\b"
    r"|\bshall (?:apply(?! for)|be governed by|be without prejudice|have legal|be liable|form an? (?:integral )?part)\b"
    r"|^(?:please )?do not (?:hesitate|worry|panic)\b|^(?:nobody|no one|none) (?:has|have|needs?) to\b"
    r"|^no (?!.*\b(?:without|unless|until|before)\b).*\b(?:is|are) (?:needed|required|necessary|obliged)\b"
    r"|^(?:nothing in )?(?:this|the present) (?:\w+ )?(?:policy|procedure|regulation|act|law|ordinance|directive"
    r"|circular"
    r"|document|agreement|contract|annex"
    r"|article|section|paragraph|chapter|clause|title|guideline|instruction|manual|handbook|page|statute|note|list"
    r"|table)s?\b"
    r"|\b(?:purpose|aim|goal|objective|intention|idea|mission)s?\b.* (?:is|are) to\b|\bit (?:must|should) be (?:noted"
    r"|said"
    r"|remembered|stressed)\b"
)
PAST = re.compile(r"\b(?:was|were|had|did)\b")
RELATIVE_NOT = re.compile(
    r"\b(?P<r>that|which|who) (?:is|are|was|were|has|have|had|do|does|did|can|could|may) (?:not|never)\b"
)
NOBODY = re.compile(r"^(?:no (?!later\b|more\b|less\b|longer\b|fewer\b|one\b)|nobody|no one|nothing|none)\b")
SUBJECT = re.compile(r"^(?:we|you|they|i) (?=[a-z]+)")
_FILLER = re.compile(
    r"\b(?:always|also|then|immediately|promptly|(?<!the )(?<!a )(?<!its )(?<!their )(?<!our )first(?!-)|please"
    r"|in future|afterwards|subsequently|diligently|thereafter|only"
    r"|without undue delay"
    r"|in any event|as soon as possible|at once|later|beforehand|finally|either|both|strictly)\b"
)
_MAY = re.compile(r"\b(?:may|can|could|will)\b(?: (?:only|then))?(?: be\b)?")
_LEFT = re.compile(r"\b(?:no(?!-)|nobody|no one|nothing|not|never)\b")


def phrase(text: str) -> str:
    """Return the words that name a step: without modal words, negation and fillers."""
    for pattern in (ENSURE, PROHIBITED, NEVER, MUST, REQUIRED, _MAY):
        text = pattern.sub(" ", text, count=1)
    for pattern in (_FILLER, _LEFT):
        text = pattern.sub(" ", text)
    text = re.sub(r"\s+([,])", r"\1", " ".join(text.split())).strip(" ,.:")
    return readable(re.sub(r"^to (?=[a-z])", "", text))


def forbids(text: str) -> bool:
    """Returns whether the clause says that something is not done, or must not be done."""
    text = RELATIVE_NOT.sub(r"\g<r>", text)
    return bool(NEVER.search(text) or PROHIBITED.search(text) or NOBODY.search(text))


def obliges(text: str) -> bool:
    """Return whether the clause says that something must be done."""
    demands = MUST.search(text) or REQUIRED.search(text) or ENSURE.match(text) or is_imperative(text)
    return bool(demands and not forbids(text) and not PERMISSION.search(text))


def tells_only(text: str) -> bool:
    """Return whether the clause is background: a definition, a hedge or a past fact."""
    if TELLING.search(text) or HEDGE.search(text):
        return True
    return bool(PAST.search(text)) and not (MUST.search(text) or NEVER.search(text) or is_imperative(text))


def obliged_verb(text: str) -> str:
    """Return the stem of the verb that a clause obliges or forbids, "" where it has none."""
    for pattern in (NEVER, MUST):
        if match := pattern.search(text):
            return next(iter(stems(text[match.end() :])), "")
    if is_imperative(text):
        return next(iter(stems(text)), "")
    return ""


def coordinated(text: str) -> list[str]:
    """Return a clause with two verbs as two: "must be sealed and registered", "check the file and call the client"."""
    match = MUST.search(text) or re.search(r"\b(?:is|are|be)\b", text)
    clauses = [] if match else re.split(r",? and (?:then |also )?", text)
    if len(clauses) > 1 and _acts(clauses[0], 4) and all(_acts(p) for p in clauses[1:]):
        return clauses
    plain = SUBJECT.sub("", text)
    if is_imperative(plain) and not match:
        head, rest = "", plain
    elif is_imperative(text):
        head, rest = "", text
    elif match:
        head, rest = text[: match.end()], text[match.end() :]
    else:
        return [text]
    passive = head.endswith((" be", " is", " are"))
    fits = is_participle if passive else is_base
    parts = [MUST.sub("", p, count=1).strip() for p in re.split(r",? and (?:then |also |subsequently )?|, ", rest)]
    if len(parts) < 2 or not all(_begins(p, fits, passive) for p in parts):
        return [text]
    return [f"{head} {p.strip()}".strip() for p in parts if p.strip()]


def _acts(text: str, words: int = 1) -> bool:
    """Return whether one of the first words is a verb in the third person with words after it: "signs the slip"."""
    tokens = words_in(text)
    return any(may_be_third_person(w) for w in tokens[:words]) and len(tokens) > 1


def _begins(text: str, fits: object, passive: bool) -> bool:
    words = [w for w in words_in(text) if not w.endswith("ly")]
    if not words or not callable(fits) or not fits(words[0]):
        return False
    return passive or (len(words) > 1 and words[1] not in FINITE)
