"""Accounts payable: the tasks of supplier invoices and employee expenses, and their four kinds of case."""

from opus_pipelines.quality.sample.model import (
    Check,
    Do,
    Industry,
    Kind,
    Maybe,
    Needed,
    Task,
    Together,
    by_name,
    code,
    human,
    large,
    small,
)

_TASKS = by_name(
    Task(
        "Receive Invoice",
        "Take the invoice from the mailbox into the workflow.",
        ("invoice",),
        ("invoice record",),
        {"code": "Run mailbox_import: store the PDF, give it a document number and the date of receipt."},
        (code(1.0, 0.995, 0.02, 2.0),),
    ),
    Task(
        "Extract Invoice Fields",
        "Read supplier, number, dates, lines, tax and total from the invoice.",
        ("invoice record",),
        ("invoice fields",),
        {
            "model": "Return supplier, invoice number, date, due date, order number, lines, tax and total as fields. "
            "The lines must add "
            "up to the total; say so when they do not."
        },
        (small(0.6, 0.945, 0.04, 1900, 480), large(0.4, 0.985, 0.10, 1900, 500)),
    ),
    Task(
        "Validate Supplier",
        "Confirm that the supplier is in the master data and its bank account is the checked one.",
        ("invoice fields", "supplier master"),
        ("supplier status",),
        {
            "code": "Run supplier_lookup by tax number; compare the account on the invoice with the master data.",
            "human": "Compare name, tax number and bank account with the master data; call the supplier back on a "
            "known number when the "
            "account differs.",
        },
        (code(0.7, 0.99, 0.03, 3.0), human(0.3, 0.985, 0.15, 7)),
    ),
    Task(
        "Match Purchase Order",
        "Find the purchase order and compare its lines, quantities and prices with the invoice.",
        ("invoice fields", "purchase order"),
        ("match result",),
        {
            "code": "Run po_match with a tolerance of two per cent in price and none in quantity.",
            "model": "Pair each invoice line with an order line. List the differences in quantity and price with "
            "both figures.",
        },
        (code(0.6, 0.975, 0.05, 4.0), large(0.4, 0.98, 0.15, 3300, 420)),
    ),
    Task(
        "Resolve Price Variance",
        "Settle with the buyer a price that differs from the order.",
        ("match result",),
        ("variance decision",),
        {
            "human": "Ask the buyer whether the new price was agreed; record the answer, or ask the supplier for a "
            "credit note."
        },
        (human(1.0, 0.99, 0.2, 16),),
    ),
    Task(
        "Confirm Goods Receipt",
        "Have the warehouse confirm that what was invoiced has arrived.",
        ("match result", "delivery note"),
        ("receipt confirmation",),
        {
            "human": "Ask the receiving warehouse to count the delivery against the delivery note and to sign for "
            "quantity and condition."
        },
        (human(1.0, 0.99, 0.5, 32),),
    ),
    Task(
        "Identify Cost Owner",
        "Find out who ordered without a purchase order, and for which cost centre.",
        ("invoice fields",),
        ("cost owner",),
        {
            "model": "From names, places and earlier invoices of this supplier, name the most likely cost owner and "
            "cost centre, and how "
            "sure you are.",
            "human": "Look up earlier invoices of this supplier, ask the department, and note the cost owner and the "
            "cost centre.",
        },
        (small(0.6, 0.94, 0.05, 2200, 160), human(0.4, 0.975, 0.15, 10)),
    ),
    Task(
        "Confirm Order with Requester",
        "Have the person who ordered confirm in writing that the service was ordered and delivered.",
        ("cost owner", "invoice fields"),
        ("requester confirmation",),
        {
            "human": "Send the invoice to the requester; get a yes in writing for scope, period and price, and chase "
            "it after two days."
        },
        (human(1.0, 0.99, 0.5, 36),),
    ),
    Task(
        "Check Duplicate Invoice",
        "Make sure that the same document was not entered before.",
        ("invoice fields",),
        ("duplicate check",),
        {"code": "Run duplicate_scan by supplier, number, date and amount over three years."},
        (code(1.0, 0.992, 0.03, 3.2),),
    ),
    Task(
        "Check Tax Treatment",
        "Decide which tax code applies, and whether tax is due at all.",
        ("invoice fields",),
        ("tax code",),
        {
            "model": "Decide the tax code from the supplier's country, the kind of supply and the tax shown. Name "
            "the rule.",
            "human": "Decide the tax code by the tax matrix; note reverse charge where the supplier is abroad.",
        },
        (large(0.55, 0.98, 0.12, 2100, 220), small(0.3, 0.94, 0.04, 2100, 200), human(0.15, 0.985, 0.2, 9)),
    ),
    Task(
        "Assign Ledger Account",
        "Choose the general ledger account for each line.",
        ("invoice fields",),
        ("ledger coding",),
        {
            "model": "Choose the account of the chart for each line, with the two nearest alternatives; prefer what "
            "was used for this "
            "supplier before.",
            "human": "Choose the account for each line from the chart of accounts, and split lines that serve two "
            "cost centres.",
        },
        (small(0.5, 0.91, 0.25, 2600, 240), large(0.3, 0.955, 0.4, 2600, 260), human(0.2, 0.965, 0.5, 8)),
    ),
    Task(
        "Review Posting",
        "A second person compares coding, tax and support with the document.",
        ("ledger coding", "tax code"),
        ("review mark",),
        {
            "human": "Compare account, cost centre, tax code and support with the document. Send back what has no "
            "support.",
            "model": "Compare the posting with the document line by line; answer PASS, or list what does not agree.",
        },
        (human(0.6, 0.985, 0.5, 11), large(0.4, 0.97, 0.35, 4200, 300)),
    ),
    Task(
        "Approve Payment",
        "Release the amount by the authority table.",
        ("review mark",),
        ("payment approval",),
        {"human": "Approve within your limit, or pass it to the next level of the authority table."},
        (human(1.0, 0.993, 0.05, 4),),
    ),
    Task(
        "Post to Ledger",
        "Book the document.",
        ("payment approval", "ledger coding"),
        ("posting",),
        {"code": "Run gl_post with the approved coding, and store the journal number."},
        (code(1.0, 0.995, 0.01, 1.5),),
    ),
    Task(
        "Schedule Payment",
        "Put the invoice into the payment run that makes its due date or its discount.",
        ("posting",),
        ("payment order",),
        {"code": "Run payment_plan: take the discount where it beats two per cent, else pay on the due date."},
        (code(1.0, 0.994, 0.01, 1.8),),
    ),
    Task(
        "Reimburse Employee",
        "Pay the approved amount to the employee with the next salary.",
        ("posting",),
        ("reimbursement",),
        {"code": "Run payroll_credit with the approved amount and the employee's number."},
        (code(1.0, 0.994, 0.01, 1.8),),
    ),
    Task(
        "Settle Card Account",
        "Clear the statement of the company card.",
        ("posting",),
        ("cleared statement",),
        {"code": "Run card_clear: clear the statement against the postings and report the rest."},
        (code(1.0, 0.994, 0.01, 2.2),),
    ),
    Task(
        "Archive Document",
        "File the document with its trail for the auditors.",
        ("posting",),
        ("archive entry",),
        {"code": "Run archive_store with a retention of ten years."},
        (code(1.0, 0.998, 0.01, 1.2),),
    ),
    Task(
        "Receive Expense Report",
        "Take the employee's report and its receipts into the workflow.",
        ("expense report",),
        ("report record",),
        {"code": "Run expense_import: store the report, number its lines and link the receipts."},
        (code(1.0, 0.995, 0.02, 2.2),),
    ),
    Task(
        "Read Receipts",
        "Read merchant, date, amount and tax from each receipt.",
        ("report record", "receipts"),
        ("receipt lines",),
        {
            "model": "For each receipt return merchant, date, amount, currency and tax.\nMark receipts that cannot "
            "be read; never fill in "
            "what is not there."
        },
        (large(0.6, 0.975, 0.12, 2900, 520), small(0.4, 0.93, 0.04, 2900, 480)),
    ),
    Task(
        "Match Card Statement",
        "Pair each line of the card statement with a receipt.",
        ("receipt lines", "card statement"),
        ("statement match",),
        {"code": "Run card_match by amount, currency and date within three days.\nList what is left on either side."},
        (code(1.0, 0.98, 0.05, 5.0),),
    ),
    Task(
        "Check Receipts against Policy",
        "Compare each line with the travel and expense policy.",
        ("receipt lines", "expense policy"),
        ("policy findings",),
        {
            "human": "Compare each line with the policy: class of travel, hotel limit, guests, alcohol, private "
            "share.\nAsk the employee "
            "where a receipt is missing, and cut what the policy does not allow."
        },
        (human(1.0, 0.99, 0.5, 26),),
    ),
    Task(
        "Ask Employee",
        "Ask the employee about a line that explains itself badly.",
        ("policy findings",),
        ("employee answer",),
        {
            "human": "Write to the employee: name the line, say what is missing, give three days.",
            "code": "Run expense_query with the standard question for the finding.",
        },
        (code(0.6, 0.995, 0.03, 2.5), human(0.4, 0.99, 0.1, 8)),
    ),
)

ACCOUNTS_PAYABLE = Industry("accounts payable", 27.0, _TASKS)

INVOICE_KINDS = (
    Kind(
        "Purchase order invoice",
        "Supplier of {goods} sends an invoice that quotes a purchase order; {lines}, delivered to the {site} "
        "warehouse, {terms}.",
        {
            "goods": ("packaging", "shelving", "light fittings", "cleaning goods"),
            "lines": ("three lines", "one line", "a dozen lines"),
            "site": ("northern", "southern"),
            "terms": ("thirty days net", "two per cent discount within ten days"),
        },
        "Order, receipt and invoice must agree before anything is posted.",
        (
            Do("Receive Invoice"),
            Do("Extract Invoice Fields"),
            Do("Validate Supplier"),
            Do("Match Purchase Order"),
            Maybe("Resolve Price Variance", 0.18),
            Needed("Confirm Goods Receipt", 0.14, 0.82),
            Together({"Check Duplicate Invoice": 0.6, "Check Tax Treatment": 0.4}),
            Do("Assign Ledger Account"),
            Check("Review Posting", "Assign Ledger Account", 0.7),
            Do("Approve Payment"),
            Do("Post to Ledger"),
            Do("Schedule Payment"),
            Do("Archive Document"),
        ),
        300,
    ),
    Kind(
        "Invoice without purchase order",
        "A {supplier} bills for {service} that was ordered by telephone; there is no purchase order, and the invoice "
        "names {who} at "
        "{site} as contact.",
        {
            "supplier": ("law firm", "marketing agency", "locksmith"),
            "service": ("work done last month", "a yearly fee"),
            "who": ("a store manager", "a project lead"),
            "site": ("head office", "the Leyford branch", "the Quayside branch", "the web shop"),
        },
        "Without an order someone must own the cost and confirm in writing what was ordered.",
        (
            Do("Receive Invoice"),
            Do("Extract Invoice Fields"),
            Do("Validate Supplier"),
            Do("Identify Cost Owner"),
            Needed("Confirm Order with Requester", 0.15, 0.82),
            Together({"Check Duplicate Invoice": 0.5, "Check Tax Treatment": 0.5}),
            Do("Assign Ledger Account"),
            Check("Review Posting", "Assign Ledger Account", 0.75),
            Do("Approve Payment"),
            Do("Post to Ledger"),
            Do("Schedule Payment"),
            Do("Archive Document"),
        ),
        260,
    ),
)

EXPENSE_KINDS = (
    Kind(
        "Travel expense report",
        "Employee of {department} claims {what} for a trip to {city} with {receipts} receipts; part was paid "
        "privately and is to be "
        "reimbursed.",
        {
            "department": ("buying", "store planning", "training"),
            "what": ("train and hotel", "flight, hotel and meals"),
            "city": ("Brunnstad", "Vellmar", "Osterby"),
            "receipts": ("five", "nine"),
        },
        "Travel: read every receipt, hold it against the policy, reimburse with the salary.",
        (
            Do("Receive Expense Report"),
            Do("Read Receipts"),
            Needed("Check Receipts against Policy", 0.15, 0.82),
            Maybe("Ask Employee", 0.2),
            Do("Check Tax Treatment"),
            Do("Assign Ledger Account"),
            Check("Review Posting", "Assign Ledger Account", 0.7),
            Do("Approve Payment"),
            Do("Post to Ledger"),
            Do("Reimburse Employee"),
            Do("Archive Document"),
        ),
        220,
    ),
    Kind(
        "Company card statement",
        "Monthly statement of the company card of {holder} with {lines} lines, mostly {what}; each line needs its "
        "receipt before the "
        "card account is cleared.",
        {
            "holder": ("a regional manager", "the facilities team", "the events team", "a buyer"),
            "lines": ("eight", "twenty", "thirty"),
            "what": ("fuel and parking", "small tools", "catering"),
        },
        "Card statements are matched line by line with receipts and then cleared.",
        (
            Do("Receive Expense Report"),
            Together({"Read Receipts": 0.6, "Match Card Statement": 0.4}),
            Needed("Check Receipts against Policy", 0.14, 0.8),
            Do("Assign Ledger Account"),
            Check("Review Posting", "Assign Ledger Account", 0.7),
            Do("Approve Payment"),
            Do("Post to Ledger"),
            Do("Settle Card Account"),
            Do("Archive Document"),
        ),
        200,
    ),
)
