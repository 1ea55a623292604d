"""Random profiles with a shape that they fit."""

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.model import (
    BlockField,
    BlockLayout,
    Cast,
    Codebook,
    FieldWeight,
    FloatingPoint,
    Function,
    Linear,
    Log,
    Quantization,
    Rotation,
    Scale,
    ScaleField,
    ScaleFloat,
    ScaleInt,
    ScaleVector,
    Scatter,
    Sparse,
    StructuredBlock,
    Tiling,
    Unit,
    ZeroField,
    ZeroPoint,
)

FLOATS = st.floats(-8, 8, width=32)
POSITIVE = st.floats(0.125, 8, width=32)
WIDTHS = {"UINT2": 2, "UINT4": 4, "UINT8": 8, "INT2": 2, "INT4": 4, "INT8": 8}


@st.composite
def linears(draw: DrawFn, shape: Shape, level: str) -> Quantization:
    """Per tensor, per channel or with a stored scale; native codes or a stream."""
    storage = draw(st.sampled_from(sorted(WIDTHS)))
    bits = draw(st.integers(1, WIDTHS[storage]))
    symmetric = draw(st.booleans())
    axis = draw(st.integers(-1, len(shape) - 1)) if level == "ROOT" else -1
    zero: ZeroPoint = 0 if symmetric else draw(st.integers(-9, 9))
    scales: list[st.SearchStrategy[Scale]] = [
        POSITIVE.map(ScaleFloat),
        st.integers(-9, 9).map(ScaleInt),
        st.sampled_from(["FLOAT16", "FLOAT", "BFLOAT16"]).map(ScaleField),
    ]
    if axis >= 0:
        channels = st.tuples(*[POSITIVE] * shape[axis])
        scales.append(channels.map(ScaleVector))
        if not symmetric and shape[axis] > 1 and draw(st.booleans()):
            zero = draw(st.tuples(*[st.integers(-9, 9)] * shape[axis]))
    if not symmetric and draw(st.integers(0, 4)) == 0:
        zero = ZeroField(draw(st.sampled_from(["UINT8", "INT4", "FLOAT16"])))
    leaf = draw(st.sampled_from([None, "UINT8"])) if bits < 8 else None
    kind = Linear(storage, bits, symmetric, draw(st.one_of(scales)), zero, axis, leaf)
    return Quantization(kind, f"{level}_LINEAR")


@st.composite
def codebooks(draw: DrawFn, shape: Shape, level: str) -> Quantization:
    """Scalar or vector tables, base N or bits, one or two added."""
    vector = draw(st.sampled_from([v for v in (1, 2, 4) if shape[-1] % v == 0]))
    books, entries = draw(st.sampled_from([1, 2])), draw(st.integers(2, 9))
    data = tuple(draw(st.lists(FLOATS, min_size=books * entries * vector, max_size=books * entries * vector)))
    scale = draw(st.sampled_from([None, ScaleFloat(0.5), ScaleField("FLOAT16")]))
    packing: dict[str, int | None] = {"index_bits": draw(st.sampled_from([4, 5, 8, 11]))}
    if draw(st.booleans()):
        size = draw(st.integers(1, 3))
        most = max(count for count in range(1, 8 * size + 1) if entries**count <= 256**size)
        packing = {"packed_count": draw(st.integers(1, most)), "packed_bytes": size, "index_bits": None}
    kind = Codebook(
        data,
        scale,
        num_codebooks=books if books > 1 else draw(st.sampled_from([None, 0, 1])),
        codebook_size=draw(st.sampled_from([None, 0, entries])),
        vector_size=vector if vector > 1 else draw(st.sampled_from([None, 0, 1])),
        flat=books * vector > 1 and draw(st.booleans()),
        **packing,
    )
    unstated = draw(st.sampled_from([(), ("index_bits",)])) if kind.index_bits else ()
    return Quantization(kind, f"{level}_CODEBOOK", unstated=unstated)


@st.composite
def floating_points(draw: DrawFn, shape: Shape, level: str) -> Quantization:
    """Components, leaves, streams, units, split storage; with and without special values."""
    values = 1
    for size in shape:
        values *= size
    leaf = draw(st.sampled_from([None, "FLOAT4E2M1", "FLOAT6E3M2", "FLOAT8E5M2", "FLOAT8E4M3FN"]))
    scale = draw(st.sampled_from([None, ScaleField("FLOAT8E8M0"), ScaleField("FLOAT16")]))
    if leaf is not None:
        from ninfer_core.schemes.profiles.check_floats import NATIVE

        bits = sum(NATIVE[leaf][:3])
        packing = (2, 1) if bits == 4 else (4, 3) if bits == 6 else (1, 1)
        kind = FloatingPoint(*NATIVE[leaf], False, *packing, carrier="native", leaf=leaf, scale=scale)
        return Quantization(kind, f"{level}_FLOATS")
    nan = draw(st.booleans())
    widths = draw(st.sampled_from([(1, 3, 2), (1, 2, 3), (0, 4, 2), (1, 5, 2), (1, 4, 3)]))
    infinite = nan and draw(st.booleans())
    bias = draw(st.integers(-3, 12))
    style = draw(st.sampled_from(["bytes", "components", "unit", "split", "repeated"]))
    if style == "bytes":
        kind = FloatingPoint(
            *widths, bias, infinite, nan, False, 8, sum(widths), carrier="bytes", scale=scale
        )
    elif style == "unit":
        kind = FloatingPoint(*widths, bias, infinite, nan, False, 8, sum(widths), unit=Unit(f"{level}_UNIT"))
    elif values * sum(widths) % 8:
        kind = FloatingPoint(*widths, bias, infinite, nan, True, 8, sum(widths), unit=Unit(f"{level}_UNIT"))
    else:
        kind = FloatingPoint(
            *widths, bias, infinite, nan, style == "split", values, values * sum(widths) // 8,
            scale=scale, repeated=style == "repeated",
        )  # fmt: skip
    return Quantization(kind, f"{level}_FLOATS")


@st.composite
def logs(draw: DrawFn, shape: Shape, level: str) -> Quantization:
    """Exponents of two, with and without signs."""
    kind = Log(draw(st.integers(1, 8)), 2.0, draw(st.integers(-9, 9)) / 2, draw(st.booleans()))
    return Quantization(kind, f"{level}_LOG")


@st.composite
def casts(draw: DrawFn, shape: Shape, level: str) -> Quantization:
    """Values of another type."""
    storage = draw(st.sampled_from(["BFLOAT16", "FLOAT16", "FLOAT", "FLOAT8E5M2", "INT8", "INT4"]))
    return Quantization(Cast(storage), f"{level}_CAST", draw(st.sampled_from([None, "FLOAT"])))


@st.composite
def blocks(draw: DrawFn, shape: Shape, level: str) -> Quantization:
    """Direct values or a codebook with an index of two fields; padding, orders, axis, scatter."""
    order = draw(st.sampled_from([None, "INTERLEAVED", "SEQUENTIAL"]))
    axis = draw(st.sampled_from([None, *range(len(shape))])) if level == "ROOT" else None
    gap = 0 if order == "SEQUENTIAL" else draw(st.sampled_from([0, 3, 16]))
    fields: list[BlockField] = []
    end = 0

    def put(*args: object, **kwargs: object) -> None:
        nonlocal end
        offset = 0 if order == "SEQUENTIAL" else end
        field = BlockField(args[0], offset, *args[1:], **kwargs)  # type: ignore[arg-type]
        fields.append(field)
        end += field.bits

    coded = draw(st.booleans())
    extra = {}
    if coded:
        put("CODE", 3, 8)
        end += gap
        put("SIGN", 1, 8)
        extra = {
            "codebook_data": tuple(draw(st.lists(FLOATS, min_size=48, max_size=64))[:48]),
            "codebook_vector_size": 4,
            "index_formula": (FieldWeight("CODE", 1), FieldWeight("SIGN", 8)),
            "scatter": draw(st.sampled_from([None, Scatter(16, 4, 4)])),
            "flat": draw(st.booleans()),
        }
    else:
        put("VALUES", draw(st.sampled_from([2, 4, 5, 8])), 32)
        end += gap
    put("SCALE", 16, 1, "FLOAT16", scalar=draw(st.booleans()))
    if draw(st.booleans()):
        put("ZERO_POINT", 8, 1)
        put("BIAS", 32, 1, "FLOAT", scalar=True)
    layout = BlockLayout(32, -(-end // 8) if order != "SEQUENTIAL" else end // 8, tuple(fields))
    bare = order is None and level == "ROOT" and axis is None and draw(st.booleans())
    kind = StructuredBlock(
        layout,
        storage_order=order,
        axis=axis,
        block_name="STRUCTURED_BLOCK_LAYOUT" if order == "SEQUENTIAL" else f"{level}_BLOCK_LAYOUT",
        described=draw(st.booleans()),
        bare=bare,
        **extra,  # type: ignore[arg-type]
    )
    return Quantization(kind, f"{level}_BLOCK")


def leaves_of(shape: Shape, level: str) -> st.SearchStrategy[Quantization]:
    """A profile without tiles."""
    return st.one_of(
        linears(shape, level),
        codebooks(shape, level),
        floating_points(shape, level),
        logs(shape, level),
        casts(shape, level),
        blocks(shape, level),
    )


@st.composite
def tilings(draw: DrawFn, shape: Shape) -> Quantization:
    """One or two axes, orders, cycles, ragged ends, stacked groups, two levels."""
    style = draw(st.sampled_from(["flat", "axes", "stacked", "cycle", "nested"]))
    if style == "axes":
        tile = tuple(draw(st.sampled_from([0, 1, 2, 3, 4])) for _ in shape)
        extent = tuple(size or whole for size, whole in zip(tile, shape, strict=True))
        perm = draw(st.sampled_from([(), tuple(range(len(shape))), tuple(reversed(range(len(shape))))]))
        element = draw(st.one_of(linears(extent, "TILE"), casts(extent, "TILE")))
        return Quantization(Tiling(tile, (element,), tuple(range(len(shape))), perm), "ROOT")
    size = draw(st.sampled_from([4, 8, 12]))
    values = 1
    for length in shape:
        values *= length
    tiles = -(-values // size)
    if style == "stacked":
        elements = tuple(
            Quantization(Linear("UINT4", 4, False, ScaleFloat(draw(POSITIVE)), draw(st.integers(0, 15))))
            for _ in range(tiles)
        )
        return Quantization(Tiling((size,), elements, stacked=True), "ROOT")
    if style == "cycle":
        first, second = draw(linears((size,), "A")), draw(codebooks((size,), "B"))
        return Quantization(Tiling((size,), (first, second) if tiles > 1 else (first,)), "ROOT")
    if style == "nested":
        inner = Tiling((4,), (draw(leaves_of((4,), "INNER")),), field="subblocks")
        return Quantization(Tiling((size,), (Quantization(inner, "MIDDLE"),), field="superblocks"), "ROOT")
    return Quantization(Tiling((size,), (draw(leaves_of((size,), "TILE")),), field="blocks"), "ROOT")


@st.composite
def profiles(draw: DrawFn) -> tuple[Quantization, Shape]:
    """Any profile with a shape."""
    shape = draw(st.sampled_from([(32,), (48,), (4, 8), (8, 4), (3, 8), (5, 4), (2, 3, 4)]))
    made = draw(st.one_of(leaves_of(shape, "ROOT"), tilings(shape)))
    if draw(st.booleans()) and not isinstance(made.kind, Cast) and shape[-1] in (4, 8, 32):
        rotation = draw(
            st.sampled_from(
                [Rotation("HADAMARD", (shape[-1],)), Rotation("PLAIN", (shape[-1],), (0.5, 2.0, 4.0, 1.0) * (shape[-1] // 4))]
            )
        )  # fmt: skip
        kind = made.kind
        # A type that is one flat array says the last dimension by its rotation alone.
        if getattr(kind, "axis", None) in (None, -1):
            made = Quantization(
                kind, made.name, "FLOAT16", "text", (("key", "value"),), rotation, None, made.unstated
            )
    if draw(st.integers(0, 7)) == 0 and not isinstance(made.kind, FloatingPoint | Function):
        sparse = Sparse(
            Quantization(Linear("INT4", 4, True, ScaleFloat(0.5)), "BASE"), "FLOAT16", 6.0, 0.25, 3
        )
        made = Quantization(sparse, "SPARSE")
    return made, shape
