"""A table of text cells: as Markdown, or as lines that fit a terminal."""


class Table:
    def __init__(self, title, columns):
        """`columns`: (name, how soon it is given up where the terminal is narrow; 0: never)."""
        self.title = title
        self.columns = columns
        self.rows = []
        self.notes = []

    def add(self, *cells):
        assert len(cells) == len(self.columns)
        self.rows.append([str(cell) for cell in cells])

    def _filled(self):
        return [i for i in range(len(self.columns)) if any(row[i] for row in self.rows)]

    def _is_text(self, i):
        return i == 0 or all(not row[i] or row[i][0].isalpha() for row in self.rows)

    def markdown(self):
        kept = self._filled()
        lines = [f"## {self.title}", ""]
        lines.append("| " + " | ".join(self.columns[i][0] for i in kept) + " |")
        lines.append("| " + " | ".join("---" if self._is_text(i) else "---:" for i in kept) + " |")
        for row in self.rows:
            lines.append("| " + " | ".join(row[i] for i in kept) + " |")
        for note in self.notes:
            lines += ["", note]
        return "\n".join(lines) + "\n"

    def text(self, width):
        kept = self._filled()
        widths = [max([len(name)] + [len(row[i]) for row in self.rows])
                  for i, (name, _) in enumerate(self.columns)]
        while sum(widths[i] + 2 for i in kept) - 2 > width:
            droppable = [i for i in kept if self.columns[i][1] > 0]
            if not droppable:
                break
            kept.remove(max(droppable, key=lambda i: self.columns[i][1]))

        def line(cells):
            return "  ".join(cells[i].ljust(widths[i]) if self._is_text(i) else cells[i].rjust(widths[i])
                             for i in kept).rstrip()

        lines = [self.title, line([name for name, _ in self.columns])]
        lines += [line(row) for row in self.rows]
        return "\n".join(lines + self.notes) + "\n"
