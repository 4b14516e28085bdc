"""Refusals of the manual's operators: the rules that follow from their parameters, and those that they have beside them."""

import numpy
import pytest

from tests.conformance.ftdsp.calls import (ALIGNMENT, DDR, DDR_END, ELEMENT, L2, L2_OF_CORE_3, At, Input, Table)
from tests.conformance.ftdsp.chips import check_rules
from tests.conformance.ftdsp.legal import (OWN_PARAMETERS, cropping, filling, ints, local_norm, longs, reduction,
                                           structure, tensor, tensors)
from tests.conformance.ftdsp.manual import INT_MAX, Manual, operators


# ---- rules beside those of the table ----

def table_cases(add, name, prefix, space, last_bytes):
    """Of the arrays that a table points to: two entries, the second of which is wrong."""
    alignment = ALIGNMENT.get(prefix, numpy.dtype(ELEMENT[prefix]).itemsize) if prefix else 1
    first = At(DDR)

    def entries(*bad):
        return [{name: Table(name, [first, one])} for one in bad]

    yield add(f"{name}/table", [{name: None}], [{}])
    yield add(f"{name}/null", entries(None), entries(At(DDR + 2**20)))
    if alignment > 1:
        yield add(f"{name}/alignment", entries(At(DDR + 2**20 + 1)), entries(At(DDR + 2**20 + alignment)))
    yield add(f"{name}/window", entries(At(DDR_END - last_bytes + alignment, copy=False)),
              entries(At(DDR_END - last_bytes)))
    if space == "s":
        yield add(f"{name}/private", entries(At(L2)), entries(At(DDR + 2**20)))
    else:
        yield add(f"{name}/other-core", entries(At(L2_OF_CORE_3, copy=False)), entries(At(L2)))


def output_table_cases(source, source_count, name, last_count):
    def cases(add, prefix, space):
        size = numpy.dtype(ELEMENT[prefix]).itemsize
        yield from table_cases(add, name, prefix, space, last_count * size)
        at = DDR + 2**21
        yield add(f"{name}/overlap", [{source: At(at), name: Table(name, [At(DDR), At(at + (source_count - 1) * size)])},
                                      {source: At(at), name: Table(name, [At(at), At(DDR)])}],
                  [{source: At(at), name: Table(name, [At(DDR), At(at + source_count * size)])}])

    return cases


def axis_case(add):
    return add("axis/range", [{"axis": -1}, {"axis": 2}, {"axis": INT_MAX}], [{"axis": 1}])


def split_cases(add, prefix, space):
    yield from output_table_cases("input", 10, "outputs", 6)(add, prefix, space)
    yield axis_case(add)
    yield add("split_sizes/range", [{"split_sizes": ints(6, -1)}, {"split_sizes": ints(-(2**31), 3)}],
              [{"split_sizes": ints(5, 0)}])
    yield add("split_sizes/mismatch", [{"split_sizes": ints(2, 2)}, {"split_sizes": ints(3, 3)}],
              [{"split_sizes": ints(2, 3)}])  # fmt: skip


def overlap_split_cases(add, prefix, space):
    yield from output_table_cases("input", 10, "outputs", 6)(add, prefix, space)
    yield axis_case(add)
    yield add("start_indices/range", [{"start_indices": ints(-1, 2)}, {"start_indices": ints(3, 2)},
                                      {"end_indices": ints(2, 6)}],
              [{"start_indices": ints(0, 3)}, {"start_indices": ints(2, 2)}])  # fmt: skip


def list_cases(add, prefix, space):
    yield from output_table_cases("input_tensor_values", 6, "output_tensors", 3)(add, prefix, space)
    yield add("input_tensor_shape/range", [{"input_tensor_shape": ints(0, 3)}, {"input_tensor_shape": ints(-2, 3)}],
              [{"input_tensor_shape": ints(2, 3)}])
    yield add("input_tensor_total_elements/mismatch", [{"input_tensor_total_elements": 5}],
              [{"input_tensor_total_elements": 6}])


def flatten_cases(add, prefix, space):
    def param(count, size):
        return {"param": structure("FlattenParameter", elem_cnt_=count, type_size_=size)}

    yield add("param/null", [{"param": None}], [{}])
    yield add("param/range", [param(-1, 4), param(6, -4)], [param(6, 4), param(0, 4)])


def fill_cases(add, prefix, space):
    yield add("param/null", [{"param": None}], [{}])
    yield add("param/range", [{"param": filling(-1, 4)(prefix)}],
              [{"param": filling(0, 4)(prefix)}, {"param": filling(6, 0)(prefix)}])  # fmt: skip


def switch_cases(add, prefix, space):
    def inputs(second):
        return {"input_tensors": tensors((4, 3, DDR), second)}

    yield add("index/negative", [{"index": -1}, {"index": -(2**31)}], [{"index": 0}])
    yield add("input_tensors/table", [{"input_tensors": None}], [{}])
    yield add("output/null", [{"output": None}, {"output": tensor(4, 6, 0)}], [{}])
    yield add("input_tensors/range", [inputs((4, -1, DDR)), inputs((-4, 6, DDR)), inputs((2**40, 2**40, DDR))],
              [inputs((0, 6, DDR)), inputs((4, 6, DDR))])
    yield add("input_tensors/null", [inputs((4, 6, 0))], [inputs((4, 6, DDR + 64))])
    for name, there in (("input_tensors", lambda at: inputs((4, 6, at))),
                        ("output", lambda at: {"output": tensor(4, 6, at)})):  # fmt: skip
        yield add(f"{name}/window", [there(DDR_END - 23)], [there(DDR_END - 24)])
        yield add(f"{name}/private", [there(L2)], [there(DDR + 128)])
    yield add("output/overlap", [{"output": tensor(4, 6, DDR + 65)}], [{"output": tensor(4, 6, DDR + 64)}])


def broadcast_cases(add, prefix, space):
    yield add("output_shape_size/mismatch", [{"input_shape": ints(1, 1, 3, 1), "input_shape_size": 4}],
              [{"input_shape": ints(1, 3, 1), "input_shape_size": 3}])
    yield add("output_shape/mismatch", [{"input_shape": ints(1, 3)}, {"input_shape": ints(2, 1)}],
              [{"input_shape": ints(3, 1)}, {"input_shape": ints(3, 2)}])


def depth_cases(add, prefix, space):
    yield add("block/mismatch", [{"block": 3}, {"in_shape": ints(1, 3, 4, 3)}, {"in_shape": ints(1, 2, 5, 3)}],
              [{"block": 1}])  # fmt: skip


def space_cases(add, prefix, space):
    yield add("block_size/range", [{"block_size": ints(0, 2)}, {"block_size": ints(2, -1)}], [{"block_size": ints(1, 1)}])
    yield add("paddings/range", [{"paddings": ints(-1, 1, 0, 0)}, {"paddings": ints(0, 0, 0, -1)}],
              [{"paddings": ints(0, 0, 0, 0)}])
    yield add("block_size/mismatch", [{"block_size": ints(3, 1)}, {"paddings": ints(1, 0, 0, 0)}],
              [{"block_size": ints(1, 6)}])  # fmt: skip
    yield add("output/overflow", [{"paddings": ints(INT_MAX, 1, INT_MAX, 1), "block_size": ints(1, 1),
                                   "input_shape": ints(1, 2, 4, 3)}], [{}])


def batch_cases(block):
    def cases(add, prefix, space):
        yield add(f"{block}/range", [{block: ints(0, 2)}, {block: ints(2, -1)}], [{block: ints(1, 1)}])
        yield add(f"{block}/mismatch", [{block: ints(3, 1)}, {block: ints(2, 4)}], [{block: ints(1, 4)}])
        yield add("crops/range", [{"crops": ints(-1, 1, 0, 0)}, {"crops": ints(0, 0, 0, -1)}, {"crops": ints(3, 2, 0, 0)},
                                  {"crops": ints(0, 0, INT_MAX, INT_MAX)}],
                  [{"crops": ints(1, 1, 2, 1)}, {"crops": ints(2, 2, 0, 0)}])  # fmt: skip

    return cases


def format_cases(add, prefix, space):
    yield add("src_data/overflow", [{"batch": INT_MAX, "channel": INT_MAX, "plane": 1}], [{}])
    yield add("dst_data/overflow", [{"batch": INT_MAX, "channel": 1, "plane": 8192, "src_format": 0}], [{}])


def local_norm_cases(add, prefix, space):
    yield add("params/range", [{"params": local_norm(-1)}, {"params": local_norm(3, 2**31)},
                               {"params": local_norm(3, 4, -1)}],
              [{"params": local_norm(0)}, {"params": local_norm(3, 4, 0)},
               {"params": local_norm(3, 4, INT_MAX)}])  # fmt: skip
    yield add("params/numbers", [{"params": local_norm(addresses=bad)}
                                 for bad in ((None, 4, 8), (0, None, 8), (0, 4, None))], [{}])  # fmt: skip
    yield add("input/overflow", [{"params": local_norm(INT_MAX, INT_MAX)}], [{}])


def bce_cases(add, prefix, space):
    yield add("input_size/negative", [{"param": longs(-1, 0, 1)}, {"param": longs(-(2**63), 0, 1)}],
              [{"param": longs(0, 0, 1)}])  # fmt: skip
    yield add("input_size/range", [{"param": longs(2**31, 0, 1)}], [{"param": longs(6, 0, 0)}])
    yield add("reduction/range", [{"param": longs(6, -1, 1)}, {"param": longs(6, 3, 1)}],
              [{"param": longs(6, 1, 1)}, {"param": longs(6, 2, 1)}])  # fmt: skip


def simple(tail, refused, accepted):
    """One rule whose pair is the same for every function."""
    return lambda add, prefix, space: [add(tail, refused, accepted)]


def several(*cases):
    return lambda add, prefix, space: [add(*case) for case in cases]


SLICE_CASES = [("indices_shape/mismatch", [{"indices_shape": ints(2, 0)}, {"indices_shape": ints(1, 3)}],
                [{"indices_shape": ints(2, 1)}]),
               ("indices/range", [{"indices": Input("indices", ints(2, 1)[[1, 0]] + bad)} for bad in (-2, 2)], [{}])]  # fmt: skip


# Nothing else lies where the output would, so that nothing overlaps.
UPDATES_CASE = ("updates/overflow",
                [{"output": At(1 << 45, copy=False), "output_ndim": 2, "output_shape": ints(4, 2**30),
                  "indices_ndim": 2,
                  "indices_shape": ints(2**15, 1)}], [{}])  # fmt: skip


def search_cases(add, prefix, space):
    yield add("axis/range", [{"axis": -1}, {"axis": 2}], [{"axis": 1}])
    yield add("topk/mismatch", [{"topk": 5}], [{"topk": 1, "out_strides": ints(1, 1)}])
    yield add("in_strides/mismatch", [{"in_strides": ints(1, 3)}, {"in_strides": ints(4, 2)}], [{}])
    yield add("out_strides/mismatch", [{"out_strides": ints(4, 1)}, {"out_strides": ints(2, 0)}], [{}])
    yield add("output_value/null", [{"output_value": None}], [{"output_value": None, "out_value": 0}])


def given(name, values, dtype=numpy.int32):
    return {name: Input(name, numpy.array(values, dtype))}


def regions_case(add, prefix, space):
    element = numpy.float32 if prefix == "i8" else ELEMENT[prefix]
    good = [0, 0, 0, 2, 3, 0, 1, 1, 2, 2]
    bad = [[1, *good[1:]], [-1, *good[1:]], [*good[:9], numpy.inf], [*good[:9], numpy.nan]]
    return [add("roi/range", [given("roi", values, element) for values in bad], [given("roi", good, element)])]


RESIZE_CASE = ("height_scale/range", [{"height_scale": -0.5}, {"width_scale": -1.0}, {"height_scale": numpy.inf},
                                      {"width_scale": numpy.nan}], [{"height_scale": 0.0}])

REPEATED_CASES = [("large_shape/mismatch", [{"large_shape": ints(1, 3)}], [{}]),
                  ("small_shape/mismatch", [{"small_shape": ints(1, 2)}], [{"small_shape": ints(1, 1)}])]

OWN_CASES = {
    "gradmul": several(("out_shape/mismatch", [{"large_shape": ints(2, 1)}, {"small_shape": ints(1, 3)}], [{}])),
    "gradmul1l": several(*REPEATED_CASES), "gradmul2l": several(*REPEATED_CASES),
    "nlllossgrad": several(("labels/range", [given("labels", [0, 2, 3, 1]), given("labels", [0, -1, 1, 1])], [{}])),
    "softmax_cross_entropy_with_logits": several(("grads/null", [{"grads": None}], [{"grads": None, "need_grads": 0}])),
    "sparse_softmax_cross_entropy_with_logits": several(
        ("labels/range", [given("labels", [0, 4, 1]), given("labels", [0, -1, 1])], [{}]),
        ("batch_size/mismatch", [{"batch_size": 2}, {"number_of_classes": 5},
                                 {"outter_size": 2**32, "inner_size": 2**32, "batch_size": 0, "axis_size": 0,
                                  "number_of_classes": 0}],
         [{}, {"outter_size": 2**32, "inner_size": 0, "batch_size": 0, "axis_size": 0, "number_of_classes": 0}]),
        ("output/null", [{"output": None}], [{"output": None, "is_grad": 0}])),
    "resizenearestneighborgrad": several(RESIZE_CASE), "resizebilineargrad": several(RESIZE_CASE),
    "roipooling": regions_case,
    "crop_and_resize": several(
        ("param/null", [{"param": None}], [{}]),
        ("input_shape_/null", [{"param": cropping(image=None)}], [{}]),
        ("output_shape_/null", [{"param": cropping(output=None)}], [{}]),
        ("input_shape_/range", [{"param": cropping(image=(1, 3, -4, 2))}], [{}]),
        ("output_shape_/range", [{"param": cropping(output=(1, -2, 2, 2))}],
         [{"param": cropping(output=(1, 0, 2, 2))}]),
        ("output_shape_/mismatch", [{"param": cropping(output=(1, 2, 2, 1))}], [{}]),
        ("input_shape_/empty", [{"param": cropping(image=(1, 0, 4, 2))}],
         [{"param": cropping(image=(1, 0, 4, 2), output=(0, 2, 2, 2))}]),
        ("box_idx/range", [given("box_idx", [1]), given("box_idx", [-1])], [{}])),
    "reduce": several(
        ("param/null", [{"param": None}], [{}]),
        ("param/sizes", [{"param": reduction(**{name: None})} for name in ("outer", "axis", "inner")], [{}]),
        ("num_axes_/range", [{"param": reduction(axes=0)}, {"param": reduction(axes=9)}],
         [{"param": reduction(axes=1, total=6, output=2, axis=(3,), outer=(2,), inner=(1,))}]),
        ("mode_/range", [{"param": reduction(mode=-1)}, {"param": reduction(mode=8)}],
         [{"param": reduction(mode=m)} for m in range(8)]),
        ("total_num_/mismatch", [{"param": reduction(total=23)}, {"param": reduction(axis=(3, 3))},
                                 {"param": reduction(outer=(2, -2))},
                                 {"param": reduction(axes=1, total=-1, output=2, outer=(2,), axis=(-3,), inner=(1,))},
                                 {"param": reduction(axes=1, total=-1, output=-1, outer=(-1,), axis=(1,), inner=(1,))}],
         [{"param": reduction(axes=1, total=0, output=2, outer=(2,), axis=(0,), inner=(1,))}]),
        ("output_num_/mismatch", [{"param": reduction(output=1)}], [{}])),
    "argmax": search_cases, "argmin": search_cases,
    "nonzero": several(
        ("length/mismatch", [{"length": 5}], [{}]),
        ("dim_strides/range", [{"dim_strides": ints(3, 0)}, {"dim_strides": ints(-3, 1)}], [{}]),
        ("non_zero_num/negative", [given("non_zero_num", [-1])], [given("non_zero_num", [0])])),
    "sparsefillemptyrows": several(("indices_ptr/range",
                                    [given("indices_ptr", [0, 1, 2, 0, 4, 3]),
                                     given("indices_ptr", [-1, 1, 2, 0, 2, 3])], [{}]),
                                   ("output_y_indices_ptr/overflow",
                                    [{"N": 0, "rank": 2**20, "dense_rows": 2**25, "scratch_ptr": At(DDR, copy=False),
                                      "filled_count": At(DDR + 2**28, copy=False)}], [{}])),
    "lsh_projection": several(("bits_per_hash/limit", [{"bits_per_hash": 33, "hash_group_num": 0}],
                               [{"bits_per_hash": 32, "hash_group_num": 0}])),
    "lrn": local_norm_cases, "binary_cross_entropy_grad": bce_cases,
    "lpnorm": simple("p/range", [{"p": 0.0}, {"p": -1.0}, {"p": numpy.inf}, {"p": numpy.nan}],
                     [{"p": 0.5}, {"p": 1.0}, {"p": 3.0}]),
    "groupnormfusion": simple("num_groups/mismatch", [{"num_groups": 3}], [{"num_groups": 1}]),
    "layernormfusion": simple("param_inner_size/mismatch", [{"param_inner_size": 3}, {"param_inner_size": 8}],
                              [{"param_inner_size": 2}]),
    "layernormfusion_of_pairs": simple("param_inner_size/mismatch", [{"param_inner_size": 3}, {"param_inner_size": 8}],
                                       [{"param_inner_size": 2}]),
    "layernormgrad": simple("param_size/mismatch", [{"param_size": 2}, {"block_num": 2}], [{}]),
    "subgrad": several(("x1_dims/mismatch", [{"x1_dims": ints(2, 1)}, {"x1_dims": ints(3, 3)}], [{"x1_dims": ints(1, 1)}]),
                       ("x2_dims/mismatch", [{"x2_dims": ints(2, 4)}, {"x2_dims": ints(1, 2)}], [{"x2_dims": ints(1, 1)}])),
    "gather": several(
        ("axis/range", [{"axis": -1}, {"axis": 2}], [{"axis": 1}]),
        ("batch_dims/range", [{"batch_dims": -1}, {"batch_dims": 2}, {"batch_dims": 1, "axis": 0}],
         [{"batch_dims": 1, "indices_shape": ints(2), "indices": Input("indices", ints(1, 2, 0))}]),
        ("indices_shape/mismatch", [{"batch_dims": 1, "indices_shape": ints(3)}],
         [{"batch_dims": 1, "indices_shape": ints(2)}]),
        ("indices/range", [{"indices": Input("indices", ints(0, 4, 1))}, {"indices": Input("indices", ints(0, 3, -1))}],
         [{}]), ("output/overflow", [{"indices_ndim": 2, "indices_shape": ints(2**22, 2**22)}], [{}])),
    "gather_nd": several(*SLICE_CASES, ("output/overflow",
                                        [{"input_shape": ints(2, 2**30), "indices_shape": ints(2**22, 1)}], [{}])),
    "scatter_nd": several(*SLICE_CASES, UPDATES_CASE), "scatter_nd_update": several(*SLICE_CASES, UPDATES_CASE),
    "gatherd": several(
        ("dim/range", [{"dim": -1}, {"dim": 2}], [{"dim": 1}]),
        ("index/range", [{"index": Input("index", ints(0, 3, 1, 4))}, {"index": Input("index", ints(0, -1, 1, 2))}], [{}]),
        ("index_shape/mismatch", [{"index_shape": ints(4, 1)}], [{"index_shape": ints(1, 4)}])),
    "unsorted_segment_sum": simple("index/range",
                                   [{"index": Input("index", ints(2, 0, 4))},
                                    {"index": Input("index", ints(-1, 0, 2))}], [{}]),
    "sparsetodense": simple("indices_vec/range",
                            [{"indices_vec": Input("indices_vec", ints(0, 0, 0, 1, 0, -1, 0, 2, 0, 1, 0, 0))},
                             {"indices_vec": Input("indices_vec", ints(*[-(2**31)] * 3, 0)), "sparse_length": 1,
                              "output_strides": ints(*[-(2**31)] * 3)},
                             {"indices_vec": Input("indices_vec", ints(*[-(2**31)] * 3, 0)), "sparse_length": 1,
                              "output_strides": ints(*[INT_MAX] * 3)}], [{}]),
    "sparsereshape": several(
        ("in_inshape_ptr/range", [{"in_inshape_ptr": Input("x", ints(2, -3))},
                                  {"in_inshape_ptr": Input("x", ints(INT_MAX, 2))}], [{}]),
        ("in_outshape_ptr/range", [{"in_outshape_ptr": Input("x", ints(-3, 2))},
                                   {"in_outshape_ptr": Input("x", ints(INT_MAX, 2))}], [{}]),
        ("in_outshape_ptr/mismatch", [{"in_outshape_ptr": Input("x", ints(3, 3))}],
         [{"in_outshape_ptr": Input("x", ints(1, 6))}]),
        ("in_indices_ptr/range", [{"in_indices_ptr": Input("x", ints(0, 3, 1, 1))},
                                  {"in_indices_ptr": Input("x", ints(0, 2, -1, 1))}], [{}])),
    "split": split_cases, "split_with_overlap": overlap_split_cases, "tensorlistfromtensor": list_cases,
    "flatten": flatten_cases, "fill": fill_cases, "switchlayer": switch_cases, "broadcastto": broadcast_cases,
    "spacetodepth": depth_cases, "spacetobatch": space_cases, "batchtospace": batch_cases("block_size"),
    "batch_to_space": batch_cases("block"), "formattranspose": format_cases,
}  # fmt: skip


def make_rules():
    for key in operators():
        operator = Manual(key, OWN_PARAMETERS.get(key))
        yield from operator.cases()
        for prefix, space in operator.operator.functions() if key in OWN_CASES else []:
            def add(tail, refused, accepted, p=prefix, s=space, o=operator):
                return o.case(p, s, tail, refused, accepted)

            yield from OWN_CASES[key](add, prefix, space)


RULES = list(make_rules())


@pytest.mark.parametrize("chip", ["FT78NE", "MT7004", ""])
def test_rules(chip):
    check_rules(__name__, RULES, chip)
