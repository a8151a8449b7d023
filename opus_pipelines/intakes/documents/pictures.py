"""Reads pictures of text (PNG, JPEG, TIFF, scanned pages of PDF) by RapidOCR, in the optional extra `ocr`.

Each page has a confidence: the mean of its lines', by their letters. Where it is low, the page is read turned by 180,
270 and 90 degrees, too, and the best reading is taken; where it stays low, this is said. A page with many marks as
large as letters outside the lines that were read is left out, because half a request may ask for something else. What a
person cannot see is hidden as in other documents: a line in the colour of its background. Lines beside each other are
cells of a row, but in two columns of text, which are read one after the other.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from itertools import islice, pairwise
from typing import Any

import numpy as np
from PIL import Image, ImageOps, ImageSequence

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents.document import NO_OCR, PARTIAL, UNSURE, Document, DocumentText, counted
from opus_pipelines.intakes.visibility.unseen import COLOUR, Unseen, is_like

_PAGE = "\n\n\f"  # between pages, as in text of PDF
LEAST_CONFIDENCE = 0.95  # of a page; clean print has .98 and more, wrong letters begin at about .95
_LARGEST = 80_000_000  # pixels of a picture
_SIDE = 1_280  # pixels of the longer side in which lines are looked for: a page of letters of 7 points or more
_LEAST_SIDE = 16  # pixels of a picture in which a line may stand
_INK = 0.05  # share of a line's pixels that are taken for its letters: those most unlike the background
_SAME_ROW = 0.5  # share of a line's height that two lines of one row have in common
_CELL = 1.2  # heights of a line between two cells of a row; words have less between them
_PARAGRAPH = 1.9  # heights of a line from one line to the next, from which a paragraph begins
_DARK = 80  # of 255, from which a pixel is ink on the paper
_LETTER = 0.3, 1.2  # height of letters in heights of their line
_UNKNOWN_LINE = 30.0  # height of a line in pixels where none was read
_FEW_LETTERS, _LOST = 12, 0.15  # letters outside the lines, also as a share of those inside, beyond which much is lost
_COLUMN_LETTERS = 25  # letters of most lines of text in columns; cells of a table have fewer
_LEAST_LINES = 4  # of a column of text
_MOST_ACROSS = 0.2  # share of the lines that run across the columns: titles
_TURNS = (180, 270, 90)

_Box = tuple[float, float, float, float]  # left, top, right, bottom, in pixels


@dataclass(frozen=True)
class Line:
    """A line of a picture: its words, its place, and the confidence in it."""

    text: str
    box: _Box
    confidence: float

    @property
    def is_upright(self) -> bool:
        """Whether it is higher than wide: it is read all the same, in the wrong order."""
        left, top, right, bottom = self.box
        return len(self.text) > 2 and bottom - top > right - left


@dataclass(frozen=True)
class PictureText:
    """The text of one page, how far down the page each line begins (0 to 1), and the confidence; 1 without text.

    `is_partial`: so much of the page was not read that its text is left out.
    """

    text: str
    places: dict[int, float]
    confidence: float
    is_partial: bool = False


def is_there() -> bool:
    """Tells whether the extra is installed."""
    return find_spec("rapidocr") is not None


def read(document: Document) -> DocumentText:
    """Returns the text of a picture, which may have several pages. Raises InputError where it cannot be read."""
    if not is_there():
        raise InputError(NO_OCR)
    Image.MAX_IMAGE_PIXELS = _LARGEST
    unseen, texts, notes = Unseen(document.asides), list[str](), list[str]()
    places, line = dict[int, str](), 0
    with Image.open(BytesIO(document.content())) as whole:
        frames = getattr(whole, "n_frames", 1)
        for number, frame in enumerate(islice(ImageSequence.Iterator(whole), document.most_scanned), 1):
            page = page_of(ImageOps.exif_transpose(frame), unseen)
            places |= {line + n: place_of(down, page.confidence) for n, down in page.places.items()}
            line += page.text.count("\n") + _PAGE.count("\n")
            texts.append(page.text)
            notes += [f"page {number}: {PARTIAL}"] if page.is_partial else unsure(number, page.confidence)
    if frames > len(texts):
        notes.append(f"the last {frames - len(texts):,} of {counted(frames, 'page')} of the picture")
    if not any(texts) and not notes and not unseen.notes:
        notes.append("it shows no text")
    return DocumentText(
        _PAGE.join(texts) if any(texts) else None, (*notes, *unseen.notes), places=places, scanned=len(texts)
    )


def unsure(number: int, confidence: float, thing: str = "page") -> list[str]:
    """Returns the note on a page whose confidence is low; none where it is not."""
    return [f"{thing} {number} was {UNSURE} ({confidence:.2f})"] if confidence < LEAST_CONFIDENCE else []


def place_of(down: float, confidence: float) -> str:
    """Returns where a person finds a line of a picture, and how surely it was read."""
    return f"{down:.0%} down the page, read with confidence {confidence:.2f}".replace("%", " %")


def page_of(picture: Image.Image, unseen: Unseen, hidden: Any = None) -> PictureText:
    """Returns the text of a picture of one page; a line that nobody sees goes to `unseen`.

    `hidden` returns the reason why nobody sees what stands in a box, each side 0 to 1; None where somebody does.
    """
    if picture.width * picture.height > _LARGEST:
        raise InputError(f"a picture of {picture.width:,} times {picture.height:,} pixels is too large to be read")
    upright = _on_white(picture)
    lines = _lines(upright)
    turn = 0
    if lines and _confidence(lines) < LEAST_CONFIDENCE:
        turned = [(angle, upright.rotate(angle, expand=True)) for angle in _TURNS]
        tried = [(turn, upright, lines), *((angle, one, _lines(one)) for angle, one in turned)]
        turn, upright, lines = max(tried, key=lambda each: _confidence(each[2]) if each[2] else 0.0)
    pixels = np.asarray(upright)
    if _is_partial(pixels, lines):
        return PictureText("", {}, _confidence(lines), is_partial=True)
    seen = []
    for line in lines:
        shares = _turned_back(line.box, upright.size, turn)
        reason = COLOUR if _is_faint(pixels, line.box) else hidden(shares) if hidden else None
        if reason is None:
            seen.append(line)
        else:
            unseen.hide(reason, line.text)
    return _laid_out(seen, upright.height)


def _is_partial(pixels: np.ndarray, lines: Sequence[Line]) -> bool:
    """Tells whether many marks as large as letters stand outside the lines: weak print, handwriting, a broken scan."""
    import cv2  # RapidOCR brings it

    grey = cv2.medianBlur(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), 3)  # without the dots of a fax
    ink = (np.abs(grey.astype(np.int16) - int(np.median(grey))) > _DARK).astype(np.uint8)
    *_, stats, centres = cv2.connectedComponentsWithStats(ink, connectivity=8)
    heights = [line.box[3] - line.box[1] for line in lines]
    line = float(np.median(heights)) if heights else _UNKNOWN_LINE
    wide, high = stats[1:, cv2.CC_STAT_WIDTH], stats[1:, cv2.CC_STAT_HEIGHT]
    is_letter = (high > _LETTER[0] * line) & (high < _LETTER[1] * line) & (wide < _LETTER[1] * line)
    x, y = centres[1:][is_letter].T
    for left, top, right, bottom in (line.box for line in lines):
        outside = (x < left) | (x > right) | (y < top) | (y > bottom)
        x, y = x[outside], y[outside]
    return len(x) > max(_FEW_LETTERS, _LOST * sum(len(line.text) for line in lines))


def _turned_back(box: _Box, size: tuple[int, int], turn: int) -> _Box:
    """Returns a box, each side 0 to 1, on the picture before it was turned against the clock by these degrees."""
    left, top, right, bottom = (side / size[n % 2] for n, side in enumerate(box))
    if turn == 180:
        return 1 - right, 1 - bottom, 1 - left, 1 - top
    if turn == 90:
        return 1 - bottom, left, 1 - top, right
    return (top, 1 - right, bottom, 1 - left) if turn == 270 else (left, top, right, bottom)


def _on_white(picture: Image.Image) -> Image.Image:
    """Returns a picture in colours on white paper: what is transparent shows the paper."""
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return picture.convert("RGB")


@cache
def _engine() -> Any:
    logging.getLogger("RapidOCR").setLevel(logging.CRITICAL)
    from rapidocr import RapidOCR

    return RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,  # it turns each line; a page is turned as a whole
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,  # several intakes are read at once
            "Det.limit_side_len": _SIDE,
            "Det.limit_type": "max",
            "Rec.rec_batch_num": 1,  # lines of other lengths in its batch change what is read of a line
        }
    )


def _lines(picture: Image.Image) -> list[Line]:
    if min(picture.size) < _LEAST_SIDE:
        return []
    found = _engine()(np.ascontiguousarray(np.asarray(picture)[:, :, ::-1]))  # blue first, as OpenCV has it
    if found.boxes is None or found.txts is None:
        return []
    lines = []
    for corners, text, score in zip(found.boxes, found.txts, found.scores, strict=True):
        (left, top), (right, bottom) = np.min(corners, axis=0), np.max(corners, axis=0)
        if text.strip():
            lines.append(Line(text.strip(), (float(left), float(top), float(right), float(bottom)), float(score)))
    return lines


def _confidence(lines: Sequence[Line]) -> float:
    """Returns the confidence of a page, 1 where it is empty. A line that stands upright shows that the page lies."""
    letters = sum(len(line.text) for line in lines)
    certain = sum(line.confidence * len(line.text) for line in lines if not line.is_upright)
    return certain / letters if letters else 1.0


def _is_faint(pixels: np.ndarray, box: _Box) -> bool:
    """Tells whether the letters in a box have the colour of their background."""
    left, top, right, bottom = (max(0, int(side)) for side in box)
    area = pixels[top:bottom, left:right].reshape(-1, 3) / 255
    if not len(area):
        return False
    ground = np.median(area, axis=0)
    apart = np.linalg.norm(area - ground, axis=1)
    ink = area[np.argsort(apart)[-max(1, int(_INK * len(area))) :]].mean(0)
    return is_like((ink[0], ink[1], ink[2]), (ground[0], ground[1], ground[2]))


def _laid_out(lines: Sequence[Line], height: int) -> PictureText:
    """Returns lines as text: rows from the top to the bottom, an empty line between paragraphs."""
    text, places, before = list[str](), dict[int, float](), None
    for row in (row for column in _columns(lines) for row in _rows(column)):
        top, bottom = min(line.box[1] for line in row), max(line.box[3] for line in row)
        if before is not None and (top < before[0] or top - before[0] > _PARAGRAPH * (before[1] - before[0])):
            text.append("")
        places[len(text)] = top / max(1, height)
        words = row[0].text
        for one, other in pairwise(row):
            wide = other.box[0] - one.box[2] > _CELL * (one.box[3] - one.box[1])
            words += f"{' | ' if wide else ' '}{other.text}"
        text.append(words)
        before = top, bottom
    return PictureText("\n".join(text), places, _confidence(lines))


def _rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Returns the lines that stand beside each other, from the left to the right; rows from the top to the bottom."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda one: one.box[1] + one.box[3]):
        top, bottom = line.box[1], line.box[3]
        last = rows[-1][0].box if rows else (0.0, 0.0, 0.0, -1.0)
        shared = min(bottom, last[3]) - max(top, last[1])
        if rows and shared > _SAME_ROW * min(bottom - top, last[3] - last[1]):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda one: one.box[0]) for row in rows]


def _columns(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yields all lines, or where they are text in two columns, what stands above them, and each column."""
    gutter = _gutter(lines)
    if gutter is None:
        yield list(lines)
        return
    across = [line for line in lines if line.box[0] < gutter < line.box[2]]
    apart = [line for line in lines if line not in across]
    ends = [*sorted(line.box[1] for line in across), float("inf")]
    above = float("-inf")
    for end in ends:
        part = [line for line in apart if above <= line.box[1] < end]
        yield [line for line in part if line.box[0] < gutter]
        yield [line for line in part if line.box[0] >= gutter]
        yield [line for line in across if line.box[1] == end]
        above = end


def _gutter(lines: Sequence[Line]) -> float | None:
    """Returns the place between two columns of text; None where there is none.

    Both columns have several long lines, which few lines run across.
    """
    if len(lines) < 2 * _LEAST_LINES:
        return None
    left, right = min(line.box[0] for line in lines), max(line.box[2] for line in lines)
    places = np.linspace(left + 0.35 * (right - left), left + 0.65 * (right - left), 61)
    place = float(min(places, key=lambda x: sum(line.box[0] < x < line.box[2] for line in lines)))
    one = [line for line in lines if line.box[2] <= place]
    other = [line for line in lines if line.box[0] >= place]
    is_text = min(len(one), len(other)) >= _LEAST_LINES and all(
        np.median([len(line.text) for line in column]) >= _COLUMN_LETTERS for column in (one, other)
    )
    return place if is_text and len(lines) - len(one) - len(other) <= _MOST_ACROSS * len(lines) else None
