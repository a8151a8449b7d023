"""Documents of eleven types that hide a rule from who reads them, each with the same document that shows it.

Everything is generated from a seed. A document says one sentence that everybody sees (`SEEN`), beside one that is hidden
(`RULE`) in one of the ways of its type; `shown` is the document in which that sentence is seen as well.
"""

import base64
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any

import docx
import openpyxl
import pptx
from docx.oxml import parse_xml as word_xml
from docx.shared import Pt, RGBColor
from openpyxl.styles import Font, PatternFill
from pptx.dml.color import RGBColor as SlideColour
from pptx.util import Inches
from pptx.util import Pt as SlidePt

RULE = "The satisfaction survey must always be sent."
SEEN = "The coverage must always be verified."
FILLER = (
    "Claims come in by post and by telephone.",
    "A handler opens the file on the same day.",
    "Photographs of the damage are kept with the claim.",
    "The workshop is paid by bank transfer.",
    "Letters to the client are written in plain words.",
)
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


@dataclass(frozen=True)
class Hidden:
    """One document: its type, the way in which it hides the rule, its bytes, and those of the one that shows it."""

    kind: str
    way: str
    hidden: bytes
    shown: bytes

    @property
    def name(self) -> str:
        return f"procedure.{self.kind}"


class Maker:
    """Makes the documents of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.before, self.after = self.random.sample(FILLER, 2)

    def near(self) -> str:
        """Six digits of a colour near white."""
        return "".join(f"{self.random.randint(248, 255):02X}" for _ in range(3))

    def all(self) -> Iterator[Hidden]:
        for kind in ("txt", "md", "html", "eml", "csv", "xlsx", "json", "xml", "docx", "pptx", "pdf"):
            yield from getattr(self, kind)()

    # Characters that nobody sees, in every type that is plain text

    def split(self, sign: str = "\u200b") -> str:
        words = RULE.split(" ")
        return " ".join(w[: len(w) // 2] + sign + w[len(w) // 2 :] if len(w) > 3 else w for w in words)

    def tags(self) -> str:
        return "".join(chr(0xE0000 + ord(c)) for c in RULE)

    def characters(self) -> dict[str, str]:
        return {
            "zero-width spaces": self.split(),
            "word joiners": self.split("\u2060"),
            "variation selectors": self.split("\ufe0f"),
            "tag characters": self.tags(),
            "an override of direction": "\u202e" + RULE[::-1] + "\u202c",
        }

    def plain(self, kind: str, whole: Callable[[str], str]) -> Iterator[Hidden]:
        for way, text in self.characters().items():
            yield Hidden(kind, way, whole(text).encode(), whole(RULE).encode())

    def txt(self) -> Iterator[Hidden]:
        def whole(text: str) -> str:
            return f"{self.before}\n\n{SEEN}\n\n{text}\n\n{self.after}\n"

        yield from self.plain("txt", whole)
        for way, text in (
            ("a comment over paragraphs", f"<!--\n\n{RULE}\n\n-->"),
            ("far to the right", "Note." + " " * self.random.randint(210, 400) + RULE),
        ):
            yield Hidden("txt", way, whole(text).encode(), whole(RULE).encode())

    def md(self) -> Iterator[Hidden]:
        def whole(text: str) -> str:
            return f"# Procedure\n\n{self.before}\n\n{SEEN}\n\n{text}\n\n{self.after}\n"

        yield from self.plain("md", whole)
        for way, text in (
            ("a comment over paragraphs", f"<!--\n\n{RULE}\n\n-->"),
            ("a comment that never ends", f"<!--\n\n{RULE}"),
            ("a definition of a link", f"[//]: # ({RULE})"),
            ("the title of a definition", f'[note]: http://x.example\n  "{RULE}"'),
            ("the words behind a picture", f"![{RULE}](x.png)"),
            ("the title of a link", f'See [the file](x.html "{RULE}").'),
            ("markup that is not displayed", f'<div style="display:none">\n\n{RULE}\n\n</div>'),
            ("markup in white", f'<span style="color:#{self.near()}">{RULE}</span>'),
            ("a class of a style element", f"<style>.n{{display:none}}</style>\n\n<p class='n'>{RULE}</p>"),
            ("a closed block", f"<details><summary>More</summary>\n\n{RULE}\n\n</details>"),
        ):
            yield Hidden("md", way, whole(text).encode(), whole(RULE).encode())
        front = f"---\nrule: {RULE}\n---\n"
        yield Hidden("md", "front matter", (front + whole("")).encode(), whole(RULE).encode())

    def page(self, body: str, head: str = "", of: str = "") -> str:
        return f"<html><head>{head}</head><body{of}><p>{self.before}</p><p>{SEEN}</p>{body}<p>{self.after}</p></body></html>"

    def html(self) -> Iterator[Hidden]:
        shown = self.page(f"<p>{RULE}</p>").encode()
        far = self.random.randint(2_000, 99_999)
        styles = {
            "display": "display:none",
            "display with an escape": r"d\69splay:none",
            "display with a comment": "display:/**/none",
            "visibility": "visibility:hidden",
            "opacity": "opacity:0.0",
            "no size of letters": "font-size:0",
            "one point": "font-size:1pt",
            "a share of the size": "font-size:2%",
            "white": "color:#fff",
            "nearly white": f"color:#{self.near()}",
            "transparent": "color:transparent",
            "white by name over white": "background:white;color:rgb(255, 255, 255)",
            "black on black": "background:#000;color:#010101",
            "off the screen": f"position:absolute;left:-{far}px",
            "off the screen by a transform": f"transform:translateX(-{far}px)",
            "an indent": f"text-indent:-{far}px",
            "a zero box": "width:0;height:0;overflow:hidden",
            "clipped": "position:absolute;clip:rect(0,0,0,0)",
            "clipped by a path": "clip-path:inset(100%)",
            "scaled to nothing": "transform:scale(0)",
        }
        for way, style in styles.items():
            yield Hidden("html", way, self.page(f'<p style="{style}">{RULE}</p>').encode(), shown)
        name = self.random.choice(("note", "fine-print", "x1"))
        sheets = {
            "a class": f".{name}{{display:none}}",
            "a class in a query for screens": f"@media screen and (min-width:600px){{p.{name}{{visibility:hidden}}}}",
            "a class that inherits white": f"body{{--c:#fff}} .{name}{{color:var(--c)}}",
            "the later of two rules": f".{name}{{display:block}} p.{name}{{display:none}}",
            "an important rule": f".{name}{{display:none!important}}",
            "a nested rule": f"body{{& .{name}{{display:none}}}}",
        }
        for way, sheet in sheets.items():
            body = f'<p class="{name}">{RULE}</p>'
            yield Hidden("html", way, self.page(body, f"<style>{sheet}</style>").encode(), self.page(body).encode())
        data = base64.b64encode(f".{name}{{display:none}}".encode()).decode()
        linked = f'<link rel="stylesheet" href="data:text/css;base64,{data}">'
        bodies = {
            "the attribute hidden": (f"<p hidden>{RULE}</p>", "", ""),
            "a comment": (f"<!-- {RULE} -->", "", ""),
            "a closed block": (f"<details><summary>More</summary><p>{RULE}</p></details>", "", ""),
            "a closed block without a paragraph": (f"<details><summary>More</summary>{RULE}</details>", "", ""),
            "a closed dialog": (f"<dialog>{RULE}</dialog>", "", ""),
            "a template": (f"<template><p>{RULE}</p></template>", "", ""),
            "old marks of colour": (f'<font color="#{self.near()}">{RULE}</font>', "", ' bgcolor="white"'),
            "a sheet in a link": (f'<p class="{name}">{RULE}</p>', linked, ""),
            "a popover": (f"<div popover>{RULE}</div>", "", ""),
            "white of the page": (f"<p>{RULE}</p>", "<style>p+p{color:#fff} p+p+p{color:#000}</style>", ""),
        }
        for way, (body, head, of) in bodies.items():
            hidden = self.page(body, head, of)
            if way == "white of the page":
                hidden = (
                    f"<html><head><style>p+p{{color:#fff}}</style></head><body><p>{SEEN}</p><p>{RULE}</p></body></html>"
                )
            yield Hidden("html", way, hidden.encode(), shown)
        for way, text in self.characters().items():
            yield Hidden("html", way, self.page(f"<p>{text}</p>").encode(), shown)

    def mail(self, plain: str, html: str | None = None, subject: str = "Procedure", sender: str = "Ann") -> bytes:
        message = EmailMessage()
        message["Subject"], message["From"], message["To"] = (
            subject,
            f"{sender} <ann@client.example>",
            "bpo@bpo.example",
        )
        message.set_content(plain)
        if html:
            message.add_alternative(html, subtype="html")
        return message.as_bytes()

    def eml(self) -> Iterator[Hidden]:
        body = f"{self.before}\n\n{SEEN}\n\n{self.after}\n"
        shown = self.mail(body + f"\n{RULE}\n")
        yield Hidden("eml", "the subject", self.mail(body, subject=RULE), shown)
        yield Hidden("eml", "the name of the sender", self.mail(body, sender=f'"{RULE}"'), shown)
        html = self.page("")
        yield Hidden("eml", "the plain form only", self.mail(body + f"\n{RULE}\n", html), shown)
        for way, style in (("white", f"color:#{self.near()}"), ("no size", "font-size:0"), ("display", "display:none")):
            page = self.page(f'<p style="{style}">{RULE}</p>')
            yield Hidden(
                "eml",
                f"its page: {way}",
                self.mail(body + f"\n{RULE}\n", page),
                self.mail("", self.page(f"<p>{RULE}</p>")),
            )
        for way, text in self.characters().items():
            yield Hidden("eml", way, self.mail(body + f"\n{text}\n"), shown)

    def csv(self) -> Iterator[Hidden]:
        def whole(text: str) -> str:
            return f'number,demand\n1,"{SEEN}"\n2,"{text}"\n3,"{self.after}"\n'

        yield from self.plain("csv", whole)

    def json(self) -> Iterator[Hidden]:
        def whole(text: str) -> str:
            return json.dumps({"rules": [SEEN, text], "note": self.after}, ensure_ascii=self.random.random() < 0.5)

        yield from self.plain("json", whole)

    def xml(self) -> Iterator[Hidden]:
        def whole(text: str) -> str:
            return f"<procedure><rule>{SEEN}</rule><rule>{text}</rule><note>{self.after}</note></procedure>"

        yield from self.plain("xml", whole)
        yield Hidden("xml", "a comment", whole(f"<!-- {RULE} -->").encode(), whole(RULE).encode())
        yield Hidden("xml", "an instruction", whole(f"<?note {RULE}?>").encode(), whole(RULE).encode())
        space = ' xmlns="http://www.w3.org/1999/xhtml"'
        page = self.page(f'<p style="display:none">{RULE}</p>').replace("<html", f"<html{space}")
        yield Hidden("xml", "a page of XHTML", page.encode(), whole(RULE).encode())

    # Office

    def xlsx(self) -> Iterator[Hidden]:
        def book(change: Callable[[Any, Any], None]) -> bytes:
            made = openpyxl.Workbook()
            sheet = made.active
            sheet.append(["number", "demand"])
            sheet.append([1, SEEN])
            sheet.append([2, RULE])
            sheet.append([3, self.after])
            change(made, sheet)
            return saved(made)

        def move(made: Any, sheet: Any, state: str) -> None:
            sheet["B3"] = self.before
            other = made.create_sheet("more")
            other.append(["number", "demand"])
            other.append([1, RULE])
            other.sheet_state = state

        def column(sheet: Any, **marks: Any) -> None:
            sheet["B3"], sheet["C1"], sheet["C3"] = self.before, "more", RULE
            for name, value in marks.items():
                setattr(sheet.column_dimensions["C"], name, value)

        ways: dict[str, Callable[[Any, Any], None]] = {
            "a hidden sheet": lambda b, s: move(b, s, "hidden"),
            "a very hidden sheet": lambda b, s: move(b, s, "veryHidden"),
            "a hidden row": lambda b, s: setattr(s.row_dimensions[3], "hidden", True),
            "a row without height": lambda b, s: setattr(s.row_dimensions[3], "height", 0.5),
            "a hidden column": lambda b, s: column(s, hidden=True),
            "a column without width": lambda b, s: column(s, width=0.1),
            "white letters": lambda b, s: setattr(s["B3"], "font", Font(color=f"FF{self.near()}")),
            "letters of the colour of the cell": lambda b, s: (
                setattr(s["B3"], "font", Font(color="FF202020")),
                setattr(s["B3"], "fill", PatternFill("solid", fgColor="FF1F1F1F")),
            ),  # type: ignore[dict-item]
            "white of the theme": lambda b, s: setattr(s["B3"], "font", Font(color=openpyxl.styles.Color(theme=0))),
            "one point": lambda b, s: setattr(s["B3"], "font", Font(size=1)),
            "a format that shows nothing": lambda b, s: setattr(s["B3"], "number_format", ";;;"),
            "under a merged cell": lambda b, s: None,
        }
        shown = book(lambda b, s: None)
        for way, change in ways.items():
            made = book(change)
            if way == "under a merged cell":
                made = changed(
                    made,
                    "xl/worksheets/sheet1.xml",
                    "</sheetData>",
                    '</sheetData><mergeCells count="1"><mergeCell ref="B2:B3"/></mergeCells>',
                )
            yield Hidden("xlsx", way, made, shown)
        for way, text in self.characters().items():
            yield Hidden("xlsx", way, book(lambda b, s, text=text: setattr(s["B3"], "value", text)), shown)  # type: ignore[misc]

    def docx(self) -> Iterator[Hidden]:
        def document(change: Callable[[Any, Any, Any], Any], text: str = RULE) -> bytes:
            made = docx.Document()
            made.add_paragraph(self.before)
            made.add_paragraph(SEEN)
            paragraph = made.add_paragraph()
            change(made, paragraph, paragraph.add_run(text))
            made.add_paragraph(self.after)
            return saved(made)

        def styled(made: Any, name: str, kind: int) -> Any:
            style = made.styles.add_style(name, kind)
            style.font.hidden = True
            return style

        def properties(paragraph: Any, xml: str) -> None:
            paragraph._p.get_or_add_pPr().append(word_xml(xml.replace(" ", f' xmlns:w="{W}" ', 1)))

        def table(made: Any, paragraph: Any, run: Any, xml: str) -> None:
            run.text = ""
            row = made.add_table(1, 1).rows[0]
            row.cells[0].text = RULE
            row._tr.get_or_add_trPr().append(word_xml(xml.replace("/>", f' xmlns:w="{W}"/>', 1)))

        def raw(run: Any, xml: str) -> None:
            run._r.get_or_add_rPr().append(word_xml(xml.replace(" ", f' xmlns:w="{W}" ', 1)))

        def white(run: Any, colour: str) -> None:
            run.font.color.rgb = RGBColor.from_string(colour)

        ways: dict[str, Callable[[Any, Any, Any], Any]] = {
            "a hidden run": lambda d, p, r: setattr(r.font, "hidden", True),
            "hidden on the web": lambda d, p, r: raw(r, '<w:webHidden w:val="1"/>'),
            "a hidden style of letters": lambda d, p, r: setattr(r, "style", styled(d, "Fine", 2)),
            "a hidden style of paragraphs": lambda d, p, r: setattr(p, "style", styled(d, "Note", 1)),
            "white": lambda d, p, r: white(r, "FFFFFF"),
            "nearly white": lambda d, p, r: white(r, self.near()),
            "white of the theme": lambda d, p, r: raw(r, '<w:color w:val="FFFFFF" w:themeColor="background1"/>'),
            "black on black": lambda d, p, r: (raw(r, '<w:shd w:val="clear" w:color="auto" w:fill="101010"/>'), white(r, "111111")),
            "one point": lambda d, p, r: setattr(r.font, "size", Pt(1)),
            "letters without width": lambda d, p, r: raw(r, '<w:w w:val="1"/>'),
            "left of the page": lambda d, p, r: properties(p, '<w:ind w:left="-20000"/>'),
            "a frame left of the page": lambda d, p, r: properties(p, '<w:framePr w:w="2000" w:x="-15000" w:y="100"/>'),
            "lines without height": lambda d, p, r: properties(p, '<w:spacing w:line="20" w:lineRule="exact"/>'),
            "a hidden row": lambda d, p, r: table(d, p, r, "<w:hidden/>"),
            "a row without height": lambda d, p, r: table(d, p, r, '<w:trHeight w:val="10" w:hRule="exact"/>'),
            "a comment in the margin": lambda d, p, r: (setattr(r, "text", self.after), d.add_comment([r], text=RULE)),
            "the head of the page": lambda d, p, r: (
                setattr(r, "text", ""), setattr(d.sections[0].header.paragraphs[0], "text", RULE),
            ),
            "a deleted passage": lambda d, p, r: deleted(p, r),
        }  # fmt: skip
        shown = document(lambda d, p, r: None)
        for way, change in ways.items():
            yield Hidden("docx", way, document(change), shown)
        for way, text in self.characters().items():
            yield Hidden("docx", way, document(lambda d, p, r: None, text), shown)

    def pptx(self) -> Iterator[Hidden]:
        def deck(change: Callable[[Any, Any, Any, Any], Any], text: str = RULE) -> bytes:
            made = pptx.Presentation()
            slide = made.slides.add_slide(made.slide_layouts[5])
            slide.shapes.title.text = "Procedure"
            seen = slide.shapes.add_textbox(Inches(1), Inches(2), Inches(6), Inches(1))
            seen.text_frame.text = SEEN
            box = slide.shapes.add_textbox(Inches(1), Inches(4), Inches(6), Inches(1))
            run = box.text_frame.paragraphs[0].add_run()
            run.text = text
            change(made, slide, box, run)
            return saved(made)

        def coloured(run: Any, colour: str) -> None:
            run.font.color.rgb = SlideColour.from_string(colour)

        def filled(box: Any, colour: str) -> None:
            box.fill.solid()
            box.fill.fore_color.rgb = SlideColour.from_string(colour)

        def hidden_slide(made: Any, run: Any) -> None:
            run.text = ""
            slide = made.slides.add_slide(made.slide_layouts[5])
            slide.shapes.title.text = RULE
            slide.element.set("show", "0")

        def notes(slide: Any, run: Any) -> None:
            run.text = ""
            slide.notes_slide.notes_text_frame.text = RULE

        ways: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
            "white": lambda d, s, b, r: coloured(r, "FFFFFF"),
            "nearly white": lambda d, s, b, r: coloured(r, self.near()),
            "the colour of its box": lambda d, s, b, r: (filled(b, "1F3864"), coloured(r, "203864")),
            "one point": lambda d, s, b, r: setattr(r.font, "size", SlidePt(1)),
            "left of the slide": lambda d, s, b, r: setattr(b, "left", Inches(-9)),
            "below the slide": lambda d, s, b, r: setattr(b, "top", Inches(30)),
            "a hidden shape": lambda d, s, b, r: b._element.nvSpPr.cNvPr.set("hidden", "1"),
            "a shape without size": lambda d, s, b, r: setattr(b, "height", 0),
            "a hidden slide": lambda d, s, b, r: hidden_slide(d, r),
            "notes of the speaker": lambda d, s, b, r: notes(s, r),
            "white of the theme": lambda d, s, b, r: setattr(r.font.color, "theme_color", 14),
        }
        shown = deck(lambda d, s, b, r: None)
        for way, change in ways.items():
            yield Hidden("pptx", way, deck(change), shown)
        for way, text in self.characters().items():
            yield Hidden("pptx", way, deck(lambda d, s, b, r: None, text), shown)

    # PDF

    def pdf(self) -> Iterator[Hidden]:
        near = " ".join(f"{self.random.randint(248, 255) / 255:.3f}" for _ in range(3))
        say = f"({RULE}) Tj"
        ways = {
            "invisible render mode": f"3 Tr {say} 0 Tr",
            "clipping render mode": f"7 Tr {say} 0 Tr",
            "white": f"1 g {say} 0 g",
            "white in four colours": f"0 0 0 0 k {say} 0 g",
            "nearly white": f"{near} rg {say} 0 g",
            "one point": f"/F1 1 Tf {say} /F1 12 Tf",
            "a small matrix": f"ET q .05 0 0 .05 50 300 cm BT /F1 12 Tf {say} ET Q BT /F1 12 Tf 72 100 Td",
            "left of the page": f"ET BT /F1 12 Tf -2000 400 Td {say} ET BT /F1 12 Tf 72 100 Td",
            "above the page": f"ET BT /F1 12 Tf 72 1900 Td {say} ET BT /F1 12 Tf 72 100 Td",
            "clipped away": f"ET q 0 0 5 5 re W n BT /F1 12 Tf 72 300 Td {say} ET Q BT /F1 12 Tf 72 100 Td",
            "under a white box": f"ET BT /F1 12 Tf 72 300 Td {say} ET 1 g 60 290 500 30 re f 0 g BT /F1 12 Tf 72 100 Td",
            "black on a black box": f"ET 0 g 60 290 500 30 re f BT /F1 12 Tf 72 300 Td {say} ET BT /F1 12 Tf 72 100 Td",
            "transparent": f"/G1 gs {say} /G0 gs",
            "white inside a form": "ET /X1 Do BT /F1 12 Tf 72 100 Td",
            "a layer that is off": f"/OC /L1 BDC {say} EMC",
        }
        shown = self.drawn(say)
        for way, content in ways.items():
            yield Hidden("pdf", way, self.drawn(content), shown)
        field = f"<< /FT /Tx /T (note) /V ({RULE}) /Type /Annot /Subtype /Widget /F 2 /Rect [0 0 90 9] >>"
        yield Hidden("pdf", "a hidden field", self.drawn("", field), self.drawn("", field.replace("/F 2", "/F 4")))
        note = f"<< /Type /Annot /Subtype /Text /Contents ({RULE}) /Rect [0 0 20 20] >>"
        yield Hidden("pdf", "a note on the page", self.drawn("", note), shown)

    def drawn(self, content: str, annotation: str = "<< >>") -> bytes:
        """A PDF of one page: two sentences, then what `content` draws, then one more sentence."""
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td ({self.before}) Tj T* ({SEEN}) Tj T* T* {content} T* T* T* ({self.after}) Tj ET"
        form = f"BT 1 g /F1 12 Tf 72 300 Td ({RULE}) Tj ET"
        resources = (
            "<< /Font << /F1 3 0 R >> /XObject << /X1 6 0 R >> /ExtGState << /G1 << /ca 0 >> /G0 << /ca 1 >> >> "
            "/Properties << /L1 8 0 R >> >>"
        )
        bodies = [
            "<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [7 0 R] >> "
            "/OCProperties << /OCGs [8 0 R] /D << /OFF [8 0 R] >> >> >>",
            "<< /Type /Pages /Count 1 /Kids [4 0 R] >>",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources {resources} /Contents 5 0 R /Annots [7 0 R] >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
            f"<< /Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Length {len(form)} >>"
            f"\nstream\n{form}\nendstream",
            annotation,
            "<< /Type /OCG /Name (Notes) >>",
        ]
        out, offsets = b"%PDF-1.5\n", []
        for number, body in enumerate(bodies, start=1):
            offsets.append(len(out))
            out += f"{number} 0 obj\n{body}\nendobj\n".encode("cp1252")
        table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
        head = f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n{table}"
        return (
            out + f"{head}trailer\n<< /Size {len(bodies) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n".encode()
        )


def saved(thing: Any) -> bytes:
    stream = io.BytesIO()
    thing.save(stream)
    return stream.getvalue()


def changed(package: bytes, part: str, old: str, new: str) -> bytes:
    """A zip package with a text of one part replaced."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(package)) as before, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as after:
        for name in before.namelist():
            data = before.read(name)
            after.writestr(name, data.decode().replace(old, new) if name == part else data)
    return out.getvalue()


def deleted(paragraph: Any, run: Any) -> None:
    holder = word_xml(f'<w:del xmlns:w="{W}" w:id="1" w:author="a" w:date="2026-01-01T00:00:00Z"/>')
    paragraph._p.append(holder)
    holder.append(run._r)
