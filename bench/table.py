"""A table of text cells: as Markdown, or as lines that fit a terminal."""
import textwrap


class Table:
    def __init__(self, title, columns, fixed=0):
        """`columns`: (name, how soon it is given up where the terminal is narrow; 0: never). With `fixed`, what
        still is too wide goes on in another block, which begins with so many columns again."""
        self.title = title
        self.columns = columns
        self.fixed = fixed
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

        def fits(chosen):
            return sum(widths[i] + 2 for i in chosen) - 2 <= width

        while not fits(kept) and any(self.columns[i][1] for i in kept):
            kept.remove(max(kept, key=lambda i: self.columns[i][1]))
        blocks = [kept]
        if self.fixed:
            blocks = [kept[:self.fixed]]
            for i in kept[self.fixed:]:
                if not fits(blocks[-1] + [i]):
                    blocks.append(kept[:self.fixed])
                blocks[-1] = blocks[-1] + [i]

        def line(cells, chosen):
            return "  ".join(cells[i].ljust(widths[i]) if self._is_text(i) else cells[i].rjust(widths[i])
                             for i in chosen).rstrip()

        lines = [self.title]
        for chosen in blocks:
            lines += [""] if chosen is not blocks[0] else []
            lines.append(line([name for name, _ in self.columns], chosen))
            lines += [line(row, chosen) for row in self.rows]
        lines += [textwrap.fill(note, width) for note in self.notes]
        return "\n".join(lines) + "\n"
