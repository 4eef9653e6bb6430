"""Programs of transformed graphs: parts of split ops, joins, a hoisted backward."""
