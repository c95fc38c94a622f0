"""Pictures of programs: equations as nodes, values as edges, in layers from inputs to results."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal, Var
from minijax.explain.programs import (
    Flat,
    inlined,
    is_backward,
    line_of,
    short,
    sub_programs,
    traced,
)

__all__ = ["Edge", "Graph", "Node", "graph"]

_FILLS = {"input": "#e7f5ff", "output": "#e6fcf5", "constant": "#f1f3f5", "transpose": "#f8e6fc",
          "jvp": "#e3f6f8", "vmap": "#fff1e0", "": "#ffffff"}  # fmt: skip
_LETTER = 6.7  # pixels of a letter
_HEIGHT, _GAP, _LAYER = 34, 18, 74  # of a node, between nodes, from layer to layer
_SWEEPS = 6
_MOST_POINTS = 4000  # of edges over several layers; where there are more, these are drawn straight


class Node(NamedTuple):
    """An input, a constant, an equation or a result; `kind` is that, or the transform that made it."""

    name: str
    label: str
    kind: str
    told: str


class Edge(NamedTuple):
    """A value that one node makes and another reads, with its type."""

    start: str
    end: str
    type: str


class Graph:
    """The result of `graph`: nodes and edges, as SVG, DOT or Mermaid."""

    def __init__(self, name: str, nodes: list[Node], edges: list[Edge]):
        self.name, self.nodes, self.edges = name, nodes, edges

    def dot(self) -> str:
        """Return the text of a graph for Graphviz."""
        quoted = lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        lines = [f"digraph {quoted(self.name)} {{", "  node [shape=box, style=filled];"]
        lines += [
            f"  {n.name} [label={quoted(n.label)}, fillcolor={quoted(_FILLS[n.kind])}, "
            f"tooltip={quoted(n.told)}];"
            for n in self.nodes
        ]
        lines += [f"  {e.start} -> {e.end} [label={quoted(e.type)}];" for e in self.edges]
        return "\n".join([*lines, "}"])

    def mermaid(self) -> str:
        """Return the text of a Mermaid flow chart."""
        quoted = lambda text: '"' + text.replace('"', "#quot;") + '"'
        lines = ["flowchart TD", *(f"  {n.name}[{quoted(n.label)}]" for n in self.nodes)]
        lines += [f"  {e.start} -->|{quoted(e.type)}| {e.end}" for e in self.edges]
        for kind, fill in _FILLS.items():
            members = [n.name for n in self.nodes if n.kind == kind and kind]
            if members:
                lines += [f"  classDef {kind} fill:{fill}", f"  class {','.join(members)} {kind}"]
        return "\n".join(lines)

    def svg(self) -> str:
        """Return a picture as SVG, which needs nothing else."""
        return _svg(self, _Layout(self))

    def save(self, path: Any) -> Any:
        """Write a file, in the format of its suffix: `.svg`, `.dot`, `.mmd` or `.html`."""
        formats = {"svg": self.svg, "html": self.svg, "dot": self.dot, "gv": self.dot,
                   "mmd": self.mermaid}  # fmt: skip
        suffix = str(path).rpartition(".")[2]
        if suffix not in formats:
            raise ValueError(f"No format has the suffix {suffix!r}: there are {sorted(formats)}.")
        with open(path, "w", encoding="utf-8") as file:
            file.write(formats[suffix]())
        return path

    def _repr_html_(self) -> str:
        return f'<div style="overflow: auto; max-height: 40em">{self.svg()}</div>'

    def __repr__(self) -> str:
        return f"<Graph of {self.name}: {len(self.nodes)} nodes, {len(self.edges)} edges>"


def graph(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Graph:
    """Draw the program of a function as a graph of its equations.

    - `args`, `kwargs`: arrays and pytrees as `f` takes them, or `ShapeDtypeStruct`s

    Calls are drawn as what they call; a loop or branch is one node, with the number of equations
    within. Nodes are coloured by the transform that made them. The result shows itself as SVG in a
    notebook, and has `.svg()`, `.dot()`, `.mermaid()` and `.save(path)`. TypeError where `f` cannot
    be traced. Source: layered drawing (Sugiyama, Tagawa and Toda, 1981).

    >>> explain.graph(jax.grad(jnp.sin), 1.0)
    <Graph of sin: 4 nodes, 3 edges>
    """
    closed = f if isinstance(f, ClosedJaxpr) else traced(f, args, kwargs).jaxpr
    nodes, edges = _drawn(inlined(closed))
    return Graph(getattr(f, "__name__", "f"), nodes, edges)


def _drawn(flat: Flat) -> tuple[list[Node], list[Edge]]:
    nodes: list[Node] = []
    made: dict[Var, str] = {}

    def add(label: str, kind: str, told: str = "") -> str:
        nodes.append(Node(f"n{len(nodes)}", label, kind, told))
        return nodes[-1].name

    for number, var in enumerate(flat.invars):
        made[var] = add(f"input {number}: {_type(var)}", "input")
    for var, _ in flat.constants:
        made[var] = add(f"constant: {_type(var)}", "constant")
    edges: list[Edge] = []
    for eqn in flat.eqns:
        name = add(_label(eqn), _kind(eqn), f"{eqn} · {short(line_of(eqn))}"[:300])
        made.update(dict.fromkeys(eqn.outvars, name))
        edges += [Edge(made[v], name, _type(v)) for v in eqn.invars if v in made]
    for number, var in enumerate(flat.outvars):
        name = add(f"result {number}: {_type(var)}", "output")
        if var in made:
            edges.append(Edge(made[var], name, _type(var)))
    read = {edge.start for edge in edges}
    unread = {n.name for n in nodes if n.kind == "constant" and n.name not in read}
    return [n for n in nodes if n.name not in unread], edges


def _type(var: Any) -> str:
    return var.aval.str_short(True)


def _kind(eqn: JaxprEqn) -> str:
    if is_backward(eqn):
        return "transpose"
    return next((kind for kind in ("jvp", "vmap") if f"{kind}(" in eqn.scope), "")


def _label(eqn: JaxprEqn) -> str:
    numbers = [str(v.val) for v in eqn.invars if type(v) is Literal]
    label = eqn.primitive.name + (f" ({', '.join(numbers)})" if numbers else "")
    within = sum(len(program.eqns) for program in sub_programs(eqn))
    if within and eqn.primitive.rule_steps is not None:
        turns = f" ×{eqn.params['length']}" if "length" in eqn.params else ""
        label += f"{turns} {{{within} equation{'s' * (within != 1)}}}"
    return label


# -- layout ----------------------------------------------------------------------------------------


class _Layout:
    """Layers of nodes, and where each is: an edge over several layers has a point in each."""

    def __init__(self, drawn: Graph):
        self.width = {n.name: max(64, 20 + _LETTER * len(n.label)) for n in drawn.nodes}
        self.rank = self._ranks(drawn)
        self.paths: list[list[str]] = []
        self.layers: list[list[str]] = [[] for _ in range(max(self.rank.values(), default=0) + 1)]
        for node in drawn.nodes:
            self.layers[self.rank[node.name]].append(node.name)
        self.above: dict[str, list[str]] = {}
        self.below: dict[str, list[str]] = {}
        spans = [self.rank[e.end] - self.rank[e.start] for e in drawn.edges]
        longest = max(spans, default=0) if sum(spans) < _MOST_POINTS else 2
        for number, edge in enumerate(drawn.edges):
            straight = spans[number] > longest
            self.paths.append([edge.start, edge.end] if straight else self._path(edge, number))
        self.x: dict[str, float] = {}
        self._order()
        self._place()

    def _ranks(self, drawn: Graph) -> dict[str, int]:
        """The layer of each node: below all that it reads; what reads nothing is next to its readers."""
        rank = {node.name: 0 for node in drawn.nodes}
        for edge in drawn.edges:  # in the order of the program
            rank[edge.end] = max(rank[edge.end], rank[edge.start] + 1)
        readers: dict[str, list[int]] = {}
        for edge in drawn.edges:
            readers.setdefault(edge.start, []).append(rank[edge.end])
        for name in readers.keys() - {edge.end for edge in drawn.edges}:
            rank[name] = min(readers[name]) - 1
        return rank

    def _path(self, edge: Edge, number: int) -> list[str]:
        path = [edge.start]
        for rank in range(self.rank[edge.start] + 1, self.rank[edge.end]):
            path.append(f"e{number}r{rank}")
            self.width[path[-1]] = 2
            self.layers[rank].append(path[-1])
        path.append(edge.end)
        for upper, lower in zip(path, path[1:], strict=False):
            self.below.setdefault(upper, []).append(lower)
            self.above.setdefault(lower, []).append(upper)
        return path

    def _order(self) -> None:
        """Sort each layer by the places of neighbours, down and up again."""
        place = {n: i for layer in self.layers for i, n in enumerate(layer)}
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            near = self.above if down else self.below
            for layer in self.layers if down else reversed(self.layers):
                key = {n: _mean([place[m] for m in near.get(n, ())], place[n]) for n in layer}
                layer.sort(key=key.__getitem__)
                place.update((n, i) for i, n in enumerate(layer))

    def _place(self) -> None:
        """Give each node a place as near to its neighbours' as the others of its layer let it."""
        for layer in self.layers:
            at = 0.0
            for name in layer:
                self.x[name] = at + self.width[name] / 2
                at += self.width[name] + _GAP
        for sweep in range(2 * _SWEEPS):
            near = self.above if sweep % 2 == 0 else self.below
            for layer in self.layers if sweep % 2 == 0 else reversed(self.layers):
                wanted = {n: _mean([self.x[m] for m in near.get(n, ())], self.x[n]) for n in layer}
                self._spread(layer, wanted)
        left = min((self.x[n] - self.width[n] / 2 for n in self.x), default=0) - _GAP
        self.x = {n: x - left for n, x in self.x.items()}

    def _spread(self, layer: list[str], wanted: dict[str, float]) -> None:
        """Push nodes apart: those that overlap form a block, which is placed at its mean."""
        blocks: list[tuple[list[str], float, float]] = []  # names, left end, width
        for name in layer:
            names, width = [name], self.width[name] + _GAP
            left = wanted[name] - width / 2
            while blocks and blocks[-1][1] + blocks[-1][2] > left:
                others, other_left, other_width = blocks.pop()
                total = width + other_width
                shifted = left - other_width
                left = (shifted * len(names) + other_left * len(others)) / (
                    len(names) + len(others)
                )
                names, width = [*others, *names], total
            blocks.append((names, left, width))
        for names, left, _ in blocks:
            for name in names:
                self.x[name] = left + (self.width[name] + _GAP) / 2
                left += self.width[name] + _GAP

    def y(self, name: str) -> float:
        rank = self.rank[name] if name in self.rank else int(name.partition("r")[2])
        return _GAP + rank * _LAYER


def _mean(numbers: list[float], default: float) -> float:
    return sum(numbers) / len(numbers) if numbers else default


# -- SVG -------------------------------------------------------------------------------------------


def _svg(drawn: Graph, layout: _Layout) -> str:
    width = max((layout.x[n] + layout.width[n] / 2 for n in layout.x), default=0) + _GAP
    height = _GAP + len(layout.layers) * _LAYER
    parts = [*_curves(drawn, layout), *_boxes(drawn, layout)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" font-family="ui-monospace, monospace" font-size="11">'
        f"<title>{html.escape(drawn.name)}</title>"
        '<defs><marker id="arrow" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" '
        'markerHeight="6" orient="auto"><path d="M0 0 6 3 0 6z" fill="#868e96"/></marker></defs>'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>'
    )


def _curves(drawn: Graph, layout: _Layout) -> Iterator[str]:
    for edge, path in zip(drawn.edges, layout.paths, strict=True):
        points = [(layout.x[n], layout.y(n)) for n in path]
        inner = [(x, y + _HEIGHT / 2) for x, y in points[1:-1]]
        points = [(points[0][0], points[0][1] + _HEIGHT), *inner, points[-1]]
        text = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
        for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
            bend = (y0 + y1) / 2
            text += f"C{x0:.0f} {bend:.0f} {x1:.0f} {bend:.0f} {x1:.0f} {y1:.0f}"
        yield (
            f'<path d="{text}" fill="none" stroke="#868e96" marker-end="url(#arrow)">'
            f"<title>{html.escape(edge.type)}</title></path>"
        )


def _boxes(drawn: Graph, layout: _Layout) -> Iterator[str]:
    types = {edge.start: edge.type for edge in drawn.edges}
    for node in drawn.nodes:
        small = types.get(node.name, "") if node.kind not in ("input", "constant") else ""
        x, y, width = layout.x[node.name], layout.y(node.name), layout.width[node.name]
        told = f"<title>{html.escape(node.told)}</title>" if node.told else ""
        yield (
            f'<g>{told}<rect x="{x - width / 2:.0f}" y="{y:.0f}" width="{width:.0f}" '
            f'height="{_HEIGHT}" rx="5" fill="{_FILLS[node.kind]}" stroke="#495057"/>'
            f'<text x="{x:.0f}" y="{y + (15 if small else 21):.0f}" text-anchor="middle" '
            f'fill="#212529">{html.escape(node.label)}</text><text x="{x:.0f}" y="{y + 27:.0f}" '
            f'text-anchor="middle" fill="#6b7280" font-size="9">{html.escape(small)}</text></g>'
        )
