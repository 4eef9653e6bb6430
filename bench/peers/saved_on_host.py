"""What PyTorch's torch.autograd.graph.save_on_cpu does, priced by the rules of docs/reference/cost.md.

Everything that the backward reads of the forward is copied out as it is saved, and copied in anew for each operation
that reads it; both copies are synchronous, so they add to the compute time. Counted in its favour: a tensor that several
operations save is copied out once. There is no budget: what remains on the device is what it needs.
"""


def saved(graph):
    """Of each tensor that the backward reads and did not make: how many backward ops read it."""
    phase = {}
    for op in graph["ops"]:
        for t in op["outputs"]:
            phase[t] = op.get("phase")
    readers = {}
    for op in graph["ops"]:
        if op.get("phase") == "backward":
            for t in set(op["inputs"]):
                if phase.get(t) != "backward":
                    readers[t] = readers.get(t, 0) + 1
    return readers


def price(graph, transfer):
    """Duration and peak; `transfer` gives the ticks of a copy of so many bytes. None without a backward."""
    readers = saved(graph)
    if not readers:
        return None
    size = [tensor["bytes"] for tensor in graph["tensors"]]
    order = graph.get("order", range(len(graph["ops"])))
    made = {t for op in graph["ops"] for t in op["outputs"]}
    outputs = set(graph["outputs"])
    duration = sum(op["time"] for op in graph["ops"])
    duration += sum(transfer(size[t]) * (1 + count) for t, count in readers.items())

    # On the device for good: what no op makes. What is saved is there while the forward uses it, and
    # while an op of the backward reads it; the rest from its op to its last reader.
    last = {}
    for at, i in enumerate(order):
        op = graph["ops"][i]
        backward = op.get("phase") == "backward"
        for t in op["outputs"]:
            last[t] = at
        for t in op["inputs"]:
            if not (backward and t in readers):
                last[t] = at
    live = graph.get("resident_bytes", 0) + sum(b for t, b in enumerate(size) if t not in made)
    peak = live
    gone = [[] for _ in graph["ops"]]
    for t, at in last.items():
        if t in made and t not in outputs:
            gone[at].append(t)
    for at, i in enumerate(order):
        op = graph["ops"][i]
        live += sum(size[t] for t in op["outputs"])
        # Copies come in beside parameters and inputs too: autograd does not know them from others.
        back = 0
        if op.get("phase") == "backward":
            back = sum(size[t] for t in set(op["inputs"]) if t in readers)
        peak = max(peak, live + op.get("workspace", 0) + back)
        live -= sum(size[t] for t in gone[at])
    return duration, peak
