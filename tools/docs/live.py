"""Pages of the site with a picture that the command draws, and that answers to pointer and keys, in them."""
import subprocess
from collections.abc import Iterator
from pathlib import Path

NETWORK = "examples/resnet50-train.graph.json.gz"
# Each: its name, title, the command (which ends with the file's name), what there is to do with it.
PAGES = [
    ("report", "A plan: half the memory of a ResNet-50", ["demo", "-o"],
     "What `lowtide demo` draws: memory over the steps of the plan, beside the step without a plan."),
    ("curve", "A trade-off curve: what each budget costs", ["curve", NETWORK, "--work", "2000000", "--html"],
     "What `lowtide curve` draws: the overhead of the best plan found for each budget, and the proven bound below it."),
    ("partition", "A partition: a network as a tree of blocks", ["partition", NETWORK, "--html"],
     "What `lowtide partition` draws: the blocks that [HiRemate](../docs/why/hiremate.md) plans one by one."),
]


def pages(binary: Path, root: Path, target: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    (target / "live" / folder).mkdir(parents=True, exist_ok=True)
    for name, title, command, text in PAGES:
        file = f"{name}-live.html"
        subprocess.run([binary, *command, target / "live" / folder / file], cwd=root, check=True, stdout=subprocess.DEVNULL)
        yield folder / f"{name}.md", (f"# {title}\n\n{text}\n\n<p><a href=\"{file}\">The page by itself</a></p>\n\n"
                                      f"<iframe class=\"live\" src=\"{file}\" title=\"{title}\"></iframe>\n")
