"""The ten slowest tests, then what became of all of them, from files of JUnit's kind: tools/test_summary.py file..."""
import sys
from xml.etree import ElementTree


def outcome_of(case) -> str:
    """What became of a case.  Ctest says what it left out in an attribute, Pytest in an element."""
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def main(paths) -> int:
    cases = []
    for path in paths:
        for case in ElementTree.parse(path).iter("testcase"):
            group, name = case.get("classname"), case.get("name")
            if group and group != name:
                name = f"{group}: {name}"
            cases.append((float(case.get("time") or 0), name, outcome_of(case)))
    print("The slowest tests:")
    for seconds, name, _ in sorted(cases, reverse=True)[:10]:
        print(f"{seconds:8.1f} s  {name}")
    for _, name, outcome in cases:
        if outcome == "failed":
            print(f"failed: {name}")
    count = {word: sum(outcome == word for *_, outcome in cases) for word in ("passed", "failed", "skipped")}
    print(", ".join(f"{number} {word}" for word, number in count.items()))
    return 1 if count["failed"] or not cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
