"""Reads plain XES traces in whole blocks, column by column, with the same result as record by record."""
