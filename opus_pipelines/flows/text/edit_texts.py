"""The parts of an utterance that edits a flow: what is removed, what replaces what, what is added, and where."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from opus_pipelines.flows.text.clauses import MAX_UTTERANCE, UtteranceError
from opus_pipelines.flows.text.conditions import described
from opus_pipelines.flows.text.operations import lemma_of_verb, operations_of_verb
from opus_pipelines.flows.text.rewriting import plain_talk

REMOVE, REPLACE, CONDITION, NEGATE, ADD = "remove", "replace", "condition", "negate", "add"
GUARD, ALWAYS = "guard", "always"
MOVE, SWAP, TOGETHER, RENAME, VALUE, ONLY = "move", "swap", "together", "rename", "value", "only"
_REMOVE = re.compile(
    r"^(?:(?:please|also|and|then|just)\s+)*(?:remove|delete|drop|skip|omit|exclude|eliminate|discard|do not|don't|"
    r"dont|never|no need (?:to|for)|there(?:'s| is) no need (?:to|for)|(?:you|we|i) (?:do not|don't) (?:need|want|have) "
    r"(?:you )?(?:to|the|a)?(?: anymore)?|(?:we |i |you |they )?no longer(?: (?:want|need|have) to| (?:want|need))?|never mind|forget about|forget|lose|scrap|ditch|kill|get rid of|leave out|take out|cut|strike|cancel|avoid|stop|without)\s+(?P<old>.+)$",
    re.IGNORECASE,
)
_PAIRS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^(?:(?:please|then|and)\s+)*(?:replace|substitute|swap(?: out)?|exchange)\s+(?P<old>.+?)\s+(?:with|by|for)\s+(?P<new>.+)$",
        r"^(?:instead of|rather than)\s+(?P<old>.+?),\s*(?P<new>.+)$",
        r"^(?:instead of|rather than)\s+(?P<old>.+?)\s+(?P<new>(?:use|go with|choose|take)\s+.+)$",
        r"^(?:instead of|rather than)\s+(?P<old>.+?)\s+(?:just|simply|then)\s+(?P<new>.+)$",
        r"^(?P<new>.+?),?\s+(?:instead of|rather than|in place of)\s+(?P<old>.+)$",
        r"^(?:change|switch|convert|turn|move|modify|update)\s+(?:from\s+)?(?P<old>.+?)\s+(?:to|into)\s+(?P<new>.+)$",
        r"^(?:do not|don't)\s+(?P<old>.+?),?\s+(?:but|instead,?|rather)\s+(?P<new>.+)$",
        r"^(?:do not|don't|stop) (?:use|using) (?P<old>.+?)[,;]\s*(?:but )?(?P<new>use .+)$",
        r"^(?P<new>.+?),? (?:and )?not (?P<old>(?:from|in|with|to|on|by|via|using) .+)$",
    )
]
_USE = re.compile(
    r"^(?:please )?(?:use|make it|go with|choose|pick|take|prefer|have|be|it should be)\s+", re.IGNORECASE
)
_MEANS = re.compile(r"^(?P<means>[\w. ]{1,60}?) to (?P<step>[a-z]+ .+)$", re.IGNORECASE)
_NOT_DONE = re.compile(
    r"^(?P<what>.+?)\s+(?:should|must|need|needs|will|shall|does|do)(?: not|n't)\s+(?:need to )?(?:to )?be\s+(?P<verb>\w+)"
    r"(?:\s+(?:any ?more|any longer|at all))?$",
    re.IGNORECASE,
)
_CONDITION_BEFORE = re.compile(
    r"^(?:please )?(?:add|insert|put|include)\s+(?:an? |the )?(?:new )?(?:condition|check|if)(?:\s+(?:that checks|to check|that|which checks))?\s+"
    r"(?P<new>(?:if|whether|that|when)\s+.+?)\s+(?:before|around|for)\s+(?P<old>.+)$",
    re.IGNORECASE,
)
_ALWAYS = re.compile(
    r"^(?:please )?(?:always\s+)?(?P<old>.+?),?\s+(?:regardless|no matter|unconditionally|whatever|independent(?:ly)? of|in (?:any|every|all) cases?\b)"
    r".*$|^always\s+(?P<step>.+)$",
    re.IGNORECASE,
)
_ONLY_DONE = re.compile(
    r"^(?P<what>.+?)\s+(?:should|must|may|can|is to|will)\s+only\s+be\s+(?P<verb>\w+)\s+(?P<new>(?:if|when|unless)\s+.+)$",
    re.IGNORECASE,
)
_SHOULD_BE = re.compile(
    r"^(?P<old>(?:the )?[\w ]{1,40}?)\s+(?:should|must|needs to|has to|ought to)\s+(?:now )?be\s+(?:(?:changed|set|equal) to )?"
    r"(?P<new>\"[^\"]+\"|'[^']+'|\d+)$",
    re.IGNORECASE,
)
_TWO = re.compile(
    r"^(?:replace|substitute|swap|exchange)\s+(?P<old>.+?)\s+(?:with|by|for)\s+(?P<new>.+?)\s+and\s+(?P<other>.+?)\s+(?:with|by|for)\s+(?P<then>.+)$",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    r"^(?P<step>.+?),?\s+\b(?:in )?between\b\s+(?P<anchor>.+?)\s+and\s+.+$|"
    r"^(?:in )?between\s+(?P<first>[^,]+?)\s+and\s+[^,]+,\s*(?P<then>.+)$",
    re.IGNORECASE,
)
_EACH = re.compile(r"^(?:also )?(?:delete|cancel|remove)\s.+\s(?:for|in|of|from) (?:each|every)\b", re.IGNORECASE)
_BEFORE_ALL = r"\b(?:before|prior to) (?:anything|everything|all)(?: else| of (?:this|that|it))?\b,?|"
_ADDED = re.compile(
    r"^(?:in addition|additionally|furthermore|also|as well|moreover|on top of that|besides)\b,?\s*", re.IGNORECASE
)
_INSTEAD = re.compile(r"^(?P<new>.+?),?\s+instead$|^instead,?\s+(?P<other>.+)$", re.IGNORECASE)
_SET_CONDITION = re.compile(
    r"^(?:please )?(?:change|set|update|modify|replace|edit)\s+(?:the\s+)?(?:if\s+)?(?:condition|check|criteria|criterion|filter)"
    r"(?:\s+from\s+.+?)?\s+(?:to|with|by|so that it checks|so that)\s+(?:be\s+)?(?:check\s+)?(?:if\s+|whether\s+|when\s+|that\s+)?(?P<new>.+)$",
    re.IGNORECASE,
)
_NEGATE = re.compile(
    r"^(?:please )?(?:negate|invert|reverse|flip)\s+(?:the\s+)?(?:if|condition|check)|^(?:please )?(?:do|check|test|use) (?:for )?the opposite\b",
    re.IGNORECASE,
)
_ELSE = re.compile(
    r"^(?:please )?(?:add|insert|include|create)\s+(?:an?\s+)?else\s*(?:branch|case|condition|clause|statement|block|part)?"
    r"\s*(?:that|which|to|where(?: you)?|and|:|,|with)?\s*(?P<rest>.+)$",
    re.IGNORECASE,
)
_ADD_STEP = re.compile(
    r"^(?:please )?(?:add|insert|include|append)\s+(?:a|an|the|another|one more)?\s*(?:new\s+|final\s+|last\s+|first\s+|extra\s+|additional\s+)?"
    r"(?:step|task|activity|action|skill)\s+(?:to|that|which|for|where you)\s+(?P<rest>.+)$",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"^(?P<step>.+?),?\s+\b(?P<where>before|after|prior to|once|following)\b\s+(?P<anchor>.+)$", re.IGNORECASE
)
_PLACE_FIRST = re.compile(
    r"^(?P<where>before|after|prior to|once|following)\s+(?P<anchor>[^,]+),\s*(?P<step>.+)$", re.IGNORECASE
)
_BEGIN = re.compile(
    _BEFORE_ALL
    + r"\b(?:at|in|to) the (?:very )?(?:beginning|start|top)\b|\bas (?:the|a) (?:very )?first (?:step|task|action|activity)\b|(?<!\bthe)(?<!\bas) first(?: of all)?$|^(?:first|start by|begin by|to begin with|initially)\b,?\s*",
    re.IGNORECASE,
)
_END = re.compile(
    r"\b(?:at|to) the (?:very )?end\b(?: of (?:the|this) (?:flow|workflow|process))?|\bas (?:the|a) (?:last|final) step\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\n+|,? and (?=always\b)")
_NEXT = re.compile(
    r",?\s+(?:and then|and|but|then)\s+(?=(?:also\s+)?(?:add|insert|remove|delete|replace|create|send|get|retrieve|include|"
    r"update|skip|don't|do not|instead|change|post|make)\b)",
    re.IGNORECASE,
)


_ALSO = re.compile(r"^(?:and|then)\s+(?=\w)|,?\s+(?:as well|too)$", re.IGNORECASE)
_NOT_USED = re.compile(
    r"^(?:we|you|they|i) (?:do not|don't|no longer) (?:use|want|need|have) (?P<old>[^,;]+?)(?:,? any ?more| any longer)?[,;:]\s*"
    r"(?P<new>.+?)(?:,? instead)?$",
    re.IGNORECASE,
)
_TOO = re.compile(
    r"^(?P<old>[\w\"' ]{1,40}?) is (?:too|not) [\w ]{1,30}[,;:]\s*(?:please )?(?:make|change|set|take|use)\s*(?:it|that|this)?"
    r"(?: to| be)?\s+(?P<new>.+)$",
    re.IGNORECASE,
)
_THERE = re.compile(
    r"^(?:put|do|store|save|post|send|keep|create|make) (?:it|them|that|this) (?:in|on|to|into|onto|with|via|by) (?P<where>.+)$",
    re.IGNORECASE,
)
_NOT_NEEDED = re.compile(
    r"^(?P<what>.+?) (?:is|are)(?: not|n't| no longer) (?:needed|necessary|required|wanted)(?: any ?more| any longer| for \w+)?$",
    re.IGNORECASE,
)
_STILL = re.compile(r",\s*(?:so |as |because )?[^,]+ (?:is|are|gets|should be) (?:always|still)\b.*$", re.IGNORECASE)
_GERUND = re.compile(r"^(?P<where>before|after) (?P<doing>\w+ing) (?P<rest>[^,]+)$", re.IGNORECASE)
_DO_ONLY_IF = re.compile(
    r"^(?:please )?(?:do|run|perform|execute|make)\s+(?P<old>this|that|it|so|these|all (?:of )?this)(?: steps?)?\s+only\s+"
    r"(?P<new>(?:if|when|unless)\s+.+)$",
    re.IGNORECASE,
)
_ONLY_IF = re.compile(r"^(?:please )?only\s+(?P<old>.+?)\s+(?P<new>(?:if|when|for|unless)\s+.+)$", re.IGNORECASE)
_IF = re.compile(r"\s(?:if|when|in case)\s+(?P<condition>.+)$", re.IGNORECASE)


_ENDS = r"(?:to|at|in|into) the (?:very )?(?P<end>start|beginning|top|front|end|bottom)(?: of (?:the|this) \w+)?"
_MOVES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"^(?:please )?(?:move|put|shift|bring|pull|push|drag|take)\s+(?P<old>.+?)\s+(?:{_ENDS}|(?P<where>before|after|behind|in front of|"
        r"ahead of|inside(?: of)?|into|within|out of|outside(?: of)?)\s+(?P<anchor>.+))$",
        r"^(?P<old>the .+?|.+? step)\s+(?:should|must|has to|needs to)\s+(?:come|happen|go|be|run|be done)\s+"
        r"(?:(?P<end>first|last)|(?P<where>before|after|behind|in front of|inside|into)\s+(?P<anchor>.+))$",
        r"^(?P<old>the .+?)\s+(?:comes?|goes|belongs)\s+(?:(?P<end>first|last)|(?P<where>before|after|behind|in front of|inside|into)\s+(?P<anchor>.+))$",
        r"^(?:do\s+)?(?P<old>.+?)\s+first,?\s+(?:and\s+)?(?:only\s+)?then\s+(?P<anchor>.+)$",
        r"^(?:please )?(?:do |run )?(?P<old>the .+?)\s+(?P<end>first|last)$",
        r"^first,?\s+(?P<old>.+?),?\s+(?:and\s+)?(?:only\s+)?then\s+(?P<anchor>.+)$",
    )
)
_SWAP = re.compile(
    r"^(?:please )?(?:swap|switch|exchange|reverse|flip|change(?= the (?:order|places?|positions?) of))(?:\s+round|\s+around)?(?:\s+(?P<order>the (?:order|places?|positions?) of))?\s+"
    r"(?P<old>.+?)(?:\s+(?:and|with)\s+(?P<new>.+?))?(?:\s+(?:round|around|please))*$",
    re.IGNORECASE,
)
_TOGETHER = re.compile(
    r"^(?:please )?(?:(?:do|run|execute|perform|make)\s+)?(?P<old>.+?)\s+(?:should (?:happen|run|be done) |can (?:happen|run|be done) |be done )?"
    r"(?:in parallel|at the same time|simultaneously|concurrently|side by side)$",
    re.IGNORECASE,
)
_RENAME = re.compile(
    r"^(?:please )?(?:rename|reword)\s+(?P<old>.+?)\s+(?:to|as|into)\s+(?P<new>.+)$|^call\s+(?P<was>the .+?)\s+(?P<now>[\"'].+[\"'])$",
    re.IGNORECASE,
)
_AMOUNT = r"[$€£]?\d[\d.,]*\s?(?:k|%|(?!not)\w{3})?"
_VALUE = re.compile(
    rf"^(?!.*\b(?:if|when|unless|only)\b)(?:please )?(?:(?:raise|lower|increase|decrease|reduce|set|change|bump|cut|drop|put)\s+(?:up\s+|down\s+)?(?:the\s+)?(?P<old>[\w ]+?)\s+(?:up\s+|down\s+)?"
    rf"(?:from\s+(?P<was>{_AMOUNT})\s+)?to\s+(?P<new>{_AMOUNT})|(?:the\s+)?(?P<name>[\w ]+?)\s+(?:is|(?:should|must|has to|needs to) be)\s+(?:now\s+)?(?P<now>{_AMOUNT})(?:\s+now)?|"
    rf"make\s+(?:it|that|this)\s+(?P<it>{_AMOUNT}))(?:,?\s+(?:and\s+)?(?:not|instead of)\s+{_AMOUNT})?$",
    re.IGNORECASE,
)
_ONLY_FOR = re.compile(
    r"^(?:please )?(?:do (?:it|this|that) )?only (?:for|do (?:it|this|that) for|if (?:they|it) (?:are|is))\s+(?:the\s+)?(?P<new>[\w\"'-]+)(?:\s+(?:ones?|\w+s))?$",
    re.IGNORECASE,
)
_ONLY_THOSE = re.compile(
    r"^(?:please )?(?:do (?:it|this|that) )?only (?:for|do (?:it|this|that) for)\s+(?P<new>(?:the\s+)?[\w ]+?\s(?:whose|that|which|who|with)\b.+)$",
    re.IGNORECASE,
)
_SKIP_FOR = re.compile(
    r"^(?:for|with)\s+(?P<new>[^,]+?),?\s+(?:skip|leave out|omit|do not|don't)\s+(?P<old>.+)$", re.IGNORECASE
)
_WRAP = re.compile(
    r"^(?:please )?(?:wrap|put|place|enclose)\s+(?P<old>.+?)\s+(?:in|into|inside|under|behind)\s+(?:an?|the)\s+(?:check|condition|if)(?:\s+(?:that|if|whether))?:?\s+(?P<new>.+)$",
    re.IGNORECASE,
)
_FOR_ALL = re.compile(
    r"^(?:please )?(?:do|run)\s+(?:it|this|that)\s+for\s+(?:all|every|each)\b.+?(?:,\s*(?:and )?not (?:just|only)\b.*)$",
    re.IGNORECASE,
)
_AS_BEFORE = re.compile(
    r"\b(?:as|like) (?:before|now|it is|they are)\b|\b(?:stays?|remains?) (?:the same|unchanged|there|as)\b",
    re.IGNORECASE,
)
_AFTER_BOTH = re.compile(r"\bafter (?:both|these|them|that|those)\W*$", re.IGNORECASE)
_TWO_TEXTS = re.compile(
    r"^.*?([\"'])(?P<old>[^\"']+)\1.*?\b(?:called|named|renamed|read|be|say)\b.*?([\"'])(?P<new>[^\"']+)\3\W*$",
    re.IGNORECASE,
)
_ELSE_FIRST = re.compile(r"^(?:else|otherwise)\b[\s,:>-]*(?P<rest>.+)$", re.IGNORECASE)
_GO_TO = re.compile(
    r"^(?P<old>(?:the |an? )?[\w ]{1,40}?)\s+(?:should|must|has to|needs to|have to|ought to)\s+(?:now\s+)?(?:go|come|be (?:sent|posted|created|"
    r"made|opened|put|stored|saved|done|written))\s+(?:out\s+)?(?:to|in|into|on|onto|via|through|by|with|from|out of|over)\s+(?P<new>[\w .]+?)"
    r"(?:,?\s+(?:instead|rather)|,?\s+(?:and\s+)?(?:not|rather than|instead of)\s+.+)?$",
    re.IGNORECASE,
)
_USE_FOR = re.compile(
    r"^(?:please )?use\s+(?P<new>[\w .]+?)\s+for\s+(?P<old>(?:the|this|that|all|each|every|our|my)\s.+?)(?:,?\s+(?:and\s+)?(?:not|instead of|rather than)\s+[\w .]+|\s+instead)?$",
    re.IGNORECASE,
)
_NOT_BUT = re.compile(r"^not\s+(?P<old>.+?),?\s+but\s+(?P<new>.+)$", re.IGNORECASE)
_WHO_NOT = re.compile(
    r"^(?P<new>.+?)\s+(?:should|must|has to|needs to|will)\s+.+?,?\s+(?:and\s+)?(?:not|instead of|rather than)\s+(?P<old>(?:the |an? |our |my )?[\w ]+)$",
    re.IGNORECASE,
)
_NOT_SO_BUT = re.compile(
    r"^(?:do not|don't)\s+(?P<old>[^,;]+)[,;]\s*(?:just\s+)?(?P<new>\w+\s+[^,;]+?)\s+instead$", re.IGNORECASE
)
_ONLY_GO = re.compile(
    r"^(?P<what>.+?)\s+(?:should|must|may|can|is to|will)\s+only\s+(?:go out|go|happen|run|come|apply|take place|be done)\s+"
    r"(?P<new>(?:if|when|unless)\s+.+)$",
    re.IGNORECASE,
)
_UNLOOP = re.compile(
    r"^(?:.*,\s*(?:so\s+)?)?(?:please )?(?:(?:do not|don't|no need to|never|stop)\s+(?:loop|iterate|repeat|go(?:ing)? through)\w*|(?:there is )?no (?:need (?:for|of) (?:a|the) )?loop\b|"
    r"without (?:a|the) loop\b)",
    re.IGNORECASE,
)
_CHECK_OFF = re.compile(
    r"^(?:please )?(?:remove|delete|drop|skip|ignore|lose|forget|take out|leave out)\s+(?:about\s+)?(?P<old>(?:the |this |that )?(?:if|condition|check|filter|test)\b[^,]*),.*$",
    re.IGNORECASE,
)
_NO = re.compile(
    r"^no\s+(?P<old>(?!need\b)[\w ]+?)(?:,?\s+(?:please|any ?more|needed|required|thanks))*$", re.IGNORECASE
)
_WE_NEED = re.compile(
    r"^(?:also\s+)?(?:we|i|you)\s+(?:also\s+)?(?:need|want)\s+(?:also\s+)?(?P<who>somebody|someone|the \w+(?: \w+)?)\s+to\s+(?P<new>.+)$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class EditText:
    """One wish. `old` is what is removed or replaced, `new` what comes; `where` is "", begin, end, before or after."""

    kind: str
    new: str = ""
    old: str = ""
    where: str = ""
    anchor: str = ""
    orelse: bool = False


def edits_in(utterance: str) -> list[EditText]:
    """Returns the wishes of an utterance in their order. Raises UtteranceError where it is empty or too long."""
    if len(utterance) > MAX_UTTERANCE:
        raise UtteranceError(f"the utterance has {len(utterance):,} characters, and {MAX_UTTERANCE:,} are the most")
    text = plain_talk(" ".join(utterance.replace("’", "'").replace("“", '"').replace("”", '"').split()))
    if not any(c.isalpha() for c in text):
        raise UtteranceError("the utterance has no words; say what to change")
    wishes: list[EditText] = []
    for sentence in _SENTENCE.split(text):
        if wishes and wishes[-1].kind == TOGETHER and _AFTER_BOTH.search(sentence):
            continue
        wishes += _wishes(sentence.strip(" .;!?"))
    return list(_joined(wishes))


def _wishes(sentence: str) -> list[EditText]:
    sentence = _ALSO.sub("", _ADDED.sub("", sentence))
    if not sentence:
        return []
    if (wish := _structural(sentence)) is not None:
        return [wish]
    if _AS_BEFORE.search(sentence):
        return []
    if match := _WE_NEED.match(sentence):
        return [addition(match["new"])]
    if match := _TWO.match(sentence):
        return [EditText(REPLACE, match["new"], match["old"]), EditText(REPLACE, match["then"], match["other"])]
    if match := _ONLY_DONE.match(sentence):
        return [EditText(GUARD, match["new"], f"{lemma_of_verb(match['verb'])} {match['what']}")]
    if match := _SHOULD_BE.match(sentence):
        return [EditText(REPLACE, match["new"], match["old"])]
    if match := _NOT_USED.match(sentence) or _TOO.match(sentence):
        there = _THERE.match(match["new"])
        return [EditText(REPLACE, there["where"] if there else match["new"], match["old"])]
    if match := _NOT_NEEDED.match(sentence):
        return [EditText(REMOVE, old=match["what"], new=sentence)]
    if match := _ALWAYS.match(sentence):
        return [EditText(ALWAYS, sentence, match["old"] or match["step"])]
    if match := _NOT_DONE.match(sentence):
        return _wishes(f"do not {lemma_of_verb(match['verb'])} {match['what']}")
    if match := _SET_CONDITION.match(sentence):
        return [EditText(CONDITION, match["new"])]
    if _NEGATE.match(sentence):
        return [EditText(NEGATE)]
    for pattern in _PAIRS:
        if match := pattern.match(sentence):
            new, old = _with_means(match["new"].strip()), _USE.sub("", match["old"].strip())
            return [EditText(REPLACE, _spelt_out(new, old), old)]
    if match := _INSTEAD.match(sentence):
        return [EditText(REPLACE, (match["new"] or match["other"]).strip())]
    if match := _CONDITION_BEFORE.match(sentence):
        return [EditText(GUARD, re.sub(r"^(?:whether|that)", "if", match["new"]), _imperative(match["old"]))]
    if match := _DO_ONLY_IF.match(sentence) or _ONLY_IF.match(sentence):
        return [EditText(GUARD, match["new"], match["old"])]
    if _EACH.match(sentence):
        return [addition(sentence)]
    if match := _REMOVE.match(_STILL.sub("", sentence)):
        if guard := _IF.search(match["old"]):
            return [EditText(GUARD, f"unless {guard['condition']}", match["old"][: guard.start()].strip(" ,"))]
        head, *rest = _NEXT.split(match["old"], maxsplit=1)
        return [EditText(REMOVE, old=head, new=sentence), *(w for part in rest for w in _wishes(part))]
    pieces = _NEXT.split(sentence)
    for place in range(1, len(pieces)):
        if _REMOVE.match(pieces[place]) and not re.match(r"(?:delete|cancel)\b", pieces[place], re.IGNORECASE):
            before = sentence[: sentence.index(pieces[place])]
            before = re.sub(r",?\s+(?:and then|and|but|then)\s*$", "", before, flags=re.IGNORECASE)
            return [addition(before), *_wishes(sentence[sentence.index(pieces[place]) :])]
    return [addition(sentence)]


def _structural(sentence: str) -> EditText | None:
    """A wish for the order, the conditions or the values of steps that are there; None for another one."""
    if match := _CHECK_OFF.match(sentence):
        return EditText(REMOVE, sentence, match["old"])
    if _UNLOOP.match(sentence):
        return EditText(REMOVE, old="loop")
    if match := _TWO_TEXTS.match(sentence):
        return EditText(RENAME, match["new"], match["old"])
    if _FOR_ALL.match(sentence):
        return EditText(REMOVE, old="condition", new=sentence)
    if match := _WRAP.match(sentence):
        return EditText(GUARD, f"if {match['new']}", match["old"])
    if match := _ONLY_THOSE.match(sentence):
        return EditText(ONLY, match["new"])
    if match := _SKIP_FOR.match(sentence):
        words = match["new"].split()
        known = described(words)
        restriction = (
            f"its {known.attribute} is {known.value}" if known else f"it is {' '.join(words[:-1]) or words[0]}"
        )
        return EditText(GUARD, f"unless {restriction}", match["old"])
    if match := _ELSE_FIRST.match(sentence):
        return EditText(ADD, match["rest"], orelse=True)
    if match := _ONLY_GO.match(sentence):
        return EditText(GUARD, match["new"], match["what"])
    for pattern in _MOVES:
        if match := pattern.match(sentence):
            given = match.groupdict()
            end = (given.get("end") or "").lower()
            where = "begin" if end in ("start", "beginning", "top", "front", "first") else "end" if end else ""
            return EditText(
                MOVE,
                sentence,
                match["old"],
                where or (given.get("where") or "before").lower(),
                given.get("anchor") or "",
            )
    match = _SWAP.match(sentence)
    if match and (match["new"] or match["order"] or re.search(r"\b(?:first|last|two|both)\b", sentence, re.IGNORECASE)):
        return EditText(SWAP, match["new"] or "", match["old"])
    if match := _TOGETHER.match(sentence):
        return EditText(TOGETHER, sentence, match["old"])
    if match := _RENAME.match(sentence):
        return EditText(RENAME, (match["new"] or match["now"]).strip("\"' "), match["old"] or match["was"])
    if match := _VALUE.match(sentence):
        return EditText(VALUE, match["new"] or match["now"] or match["it"], match["old"] or match["name"] or "")
    if match := _ONLY_FOR.match(sentence):
        return EditText(ONLY, match["new"])
    for pattern in (_NOT_SO_BUT, _NOT_BUT, _USE_FOR, _GO_TO, _WHO_NOT):
        if match := pattern.match(sentence):
            return EditText(REPLACE, match["new"], match["old"])
    if match := _NO.match(sentence):
        return EditText(REMOVE, old=match["old"], new=sentence)
    return None


def _with_means(text: str) -> str:
    """Returns the step of "use Outlook to send the mail", which is "send the mail with Outlook"; without "use" the text."""
    plain = _USE.sub("", text)
    match = _MEANS.match(plain) if plain != text else None
    return f"{match['step']} with {match['means']}" if match and operations_of_verb(match["step"].split()[0]) else plain


def _spelt_out(new: str, old: str) -> str:
    """Returns the new text with "it" or "one" replaced by the object of the old one: "creating a lead in X, create it in Y"."""
    words = re.match(
        r"^\w+ing\s+(?:an?|the|all|all the|every)?\s*(?P<thing>[\w ]+?)(?:\s+(?:in|on|from|to|with|using|via|by|for)\b.*)?$",
        old,
    )
    if words is None:
        return new
    return re.sub(r"(?<=\w )(?:it|them|one)\b", f"the {words['thing']}", new, count=1)


def addition(sentence: str) -> EditText:
    """Returns the wish that adds what a sentence asks for, with its place."""
    if match := _ELSE.match(sentence):
        return EditText(ADD, _imperative(match["rest"]), orelse=True)
    where, anchor, text = "", "", sentence
    if match := _BETWEEN.match(sentence):
        where, anchor, text = "after", match["anchor"] or match["first"], match["step"] or match["then"]
    elif _BEGIN.search(sentence):
        where, text = "begin", _BEGIN.sub("", sentence).strip(" ,")
    elif match := _PLACE_FIRST.match(sentence) or _gerund_first(sentence) or _PLACE.match(sentence):
        position = match["where"].lower()
        where = "before" if position in ("before", "prior to") else "after"
        anchor, text = match["anchor"].strip(), match["step"].strip()
    elif _END.search(sentence):
        where, text = "end", _END.sub("", sentence).strip(" ,")
    if match := _ADD_STEP.match(text):
        text = _imperative(match["rest"])
    return EditText(ADD, text, where=where, anchor=anchor)


def _gerund_first(sentence: str) -> re.Match[str] | None:
    """Reads "after going through the tickets send a mail", which has no comma before its step."""
    match = _GERUND.match(sentence)
    words = match["rest"].split() if match else []
    for place in range(1, len(words) - 1):
        if words[place + 1].lower() in ("a", "an", "the") and operations_of_verb(words[place]):
            before = f"{match['where']} {match['doing']} {' '.join(words[:place])}" if match else ""
            return _PLACE_FIRST.match(f"{before}, {' '.join(words[place:])}")
    return None


def _imperative(text: str) -> str:
    """Returns the text with its first verb in the base form: "creates an issue" → "create an issue"."""
    first, _, rest = text.partition(" ")
    return f"{lemma_of_verb(first)} {rest}".strip()


def imperative(text: str) -> str:
    """Returns a text with its first word as a base form where it is a verb: "updating the topic"."""
    return _imperative(text)


def _joined(wishes: list[EditText]) -> Iterator[EditText]:
    """Joins neighbouring additions without a place, so that a later sentence can speak of an earlier one."""
    waiting: EditText | None = None
    for wish in wishes:
        plain = wish.kind == ADD and not wish.where and not wish.orelse
        if plain and waiting is not None:
            waiting = EditText(ADD, f"{waiting.new}. {wish.new}")
        elif plain:
            waiting = wish
        else:
            if waiting is not None:
                yield waiting
                waiting = None
            yield wish
    if waiting is not None:
        yield waiting
