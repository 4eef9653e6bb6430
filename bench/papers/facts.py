"""What Table 1 of Kumar et al. says of a graph: nodes, edges, and the width of a tree decomposition."""
from __future__ import annotations

import heapq


def facts(graph):
    """Of a graph as the file format has it: ops, links between them, width by min-degree, bytes of inputs."""
    producer = {tensor: i for i, op in enumerate(graph["ops"]) for tensor in op["outputs"]}
    links = {(producer[tensor], i) for i, op in enumerate(graph["ops"]) for tensor in op["inputs"]
             if tensor in producer}
    inputs = sum(tensor["bytes"] for i, tensor in enumerate(graph["tensors"]) if i not in producer)
    return {"ops": len(graph["ops"]), "links": len(links), "width": width(len(graph["ops"]), links), "inputs": inputs}


def width(nodes, links):
    """Of the elimination that takes a node of least degree each time: what is left of its neighbours becomes a clique."""
    near = [set() for _ in range(nodes)]
    for a, b in links:
        near[a].add(b)
        near[b].add(a)
    heap = [(len(near[v]), v) for v in range(nodes)]
    heapq.heapify(heap)
    gone, widest = [False] * nodes, 0
    while heap:
        degree, v = heapq.heappop(heap)
        if gone[v] or degree != len(near[v]):
            continue
        gone[v] = True
        widest = max(widest, degree)
        for a in near[v]:
            near[a] |= near[v]
            near[a] -= {a, v}
            heapq.heappush(heap, (len(near[a]), a))
    return widest
