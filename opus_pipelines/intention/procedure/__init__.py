"""The grammar of procedures: from a sentence to what it states (`intention.stated`). English; general clause structure, no phrase list of a client."""
