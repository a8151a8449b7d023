"""Sets the bounds of what is read of a document, so that no document costs more memory or work than they allow.

They are this project's own. An element's `left_out` names what lies beyond a bound.
"""

MIB = 1 << 20

MAX_BYTES = 32 * MIB  # of a document that must be held whole: PDF, Office, e-mail
MAX_STREAMED_BYTES = 256 * MIB  # of text, CSV and JSON Lines, which are read from the front
MAX_TREE_BYTES = 8 * MIB  # of HTML, XML and JSON: parsed they take ten to twenty times their size
MAX_CHARACTERS = 400_000  # of text from one document, about 200 pages
MAX_CHARACTERS_OF_ALL = 1_000_000  # of text from all documents of one intake, or of one contract
MAX_DOCUMENTS = 1_000  # of one intake, or of one contract, attachments counted
MAX_ROWS = 1_000  # of one table
MAX_CELLS = 300_000  # of one workbook: cells that are gone through to count its rows
MAX_LINE = 1_000_000  # characters of one line, and of one field, of a table
MAX_SPACES = 20_000  # within one tag of HTML or XML: libxml2 compares each attribute of a tag with all others
MAX_VALUES = 5_000  # of one JSON or XML document
MAX_PAGES = 500  # of one PDF or presentation
MAX_ATTACHMENTS = 100  # of one e-mail
MAX_DEPTH = 3  # e-mails in e-mails
MAX_MULTIPARTS = 64  # of one e-mail
# of one e-mail: its lines times its multiparts, for its parser looks in every line for every open one
MAX_LINES_SCANNED = 20_000_000
MAX_HEAD_LINE = 4_000  # characters of one line of an e-mail's head: its parser takes the square of that

MAX_PARTS = 5_000  # files in an Office package
MAX_UNPACKED_BYTES = 256 * MIB  # of all of them
MAX_PART_BYTES = 16 * MIB  # of one XML part that is parsed whole
MAX_SHEET_BYTES = 32 * MIB  # of one sheet, which is read row by row
MAX_RATIO = 300  # unpacked to packed, of parts above a MiB: text reaches some tens, a bomb a thousand
