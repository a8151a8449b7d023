"""The grammar of procedures: from an English sentence to the statements in it. Door: `reader.statements_of`."""
