"""What the debug information of an ELF file says about functions, structures and enumerators, spelled as a surface."""

from dataclasses import dataclass, field

from elftools.elf.elffile import ELFFile

FOLLOWED = {f"DW_TAG_{kind}_type" for kind in ("const", "volatile", "restrict", "atomic")} | {"DW_TAG_typedef"}
POINTERS = {f"DW_TAG_{kind}_type" for kind in ("pointer", "reference", "rvalue_reference")}
STRUCTURES = {f"DW_TAG_{kind}_type" for kind in ("structure", "union", "class")}
BOOLEAN, FLOAT, UNSIGNED = {2}, {4}, {7, 8}  # DW_ATE_…


@dataclass
class Declarations:
    functions: dict[str, str] = field(default_factory=dict)
    structures: dict[str, dict] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)


def _name(die) -> str:
    value = die.attributes.get("DW_AT_name")
    return value.value.decode("utf-8", "replace") if value else ""


def _number(die, attribute: str, default=None):
    value = die.attributes.get(attribute)
    return value.value if value and isinstance(value.value, int) else default


def _type(die):
    return die.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in die.attributes else None


def _base(die) -> str:
    size, encoding = _number(die, "DW_AT_byte_size", 0), _number(die, "DW_AT_encoding", 0)
    if encoding in BOOLEAN:
        return "bool"
    if encoding in FLOAT:
        return f"float{8 * size}"
    unsigned = encoding in UNSIGNED and _name(die) != "char"  # a plain char has a sign on some machines only
    return f"{'u' if unsigned else ''}int{8 * size}"


def spelled(die, alias: str = "") -> str:
    """A type as a surface spells it; alias: the typedef that led here, for types without a name of their own."""
    if die is None:
        return "void"
    tag = die.tag
    if tag == "DW_TAG_base_type":
        return _base(die)
    if tag in FOLLOWED:
        return spelled(_type(die), _name(die) if tag == "DW_TAG_typedef" else alias)
    if tag in POINTERS:
        return spelled(_type(die)) + "*"
    if tag == "DW_TAG_subroutine_type":
        return signature(die)
    if tag == "DW_TAG_array_type":
        lengths = [_length(child) for child in die.iter_children() if child.tag == "DW_TAG_subrange_type"]
        return spelled(_type(die)) + "".join(f"[{length}]" for length in lengths)
    name = _name(die) or alias or "anonymous"
    return f"enum {name}" if tag == "DW_TAG_enumeration_type" else name


def _length(subrange) -> str:
    if (count := _number(subrange, "DW_AT_count")) is not None:
        return str(count)
    last = _number(subrange, "DW_AT_upper_bound")
    return "" if last is None else str(last + 1)


def signature(die) -> str:
    parameters = []
    for child in die.iter_children():
        if child.tag == "DW_TAG_formal_parameter":
            parameters.append(spelled(_type(child)))
        elif child.tag == "DW_TAG_unspecified_parameters":
            parameters.append("...")
    return f"{spelled(_type(die))}({', '.join(parameters)})"


def _fields(die, base: int = 0) -> list[str]:
    """Members as "offset name: type"; those of an unnamed member count as the structure's own, as in C."""
    fields = []
    for child in die.iter_children():
        if child.tag != "DW_TAG_member":
            continue
        offset = base + _number(child, "DW_AT_data_member_location", 0)
        if _name(child):
            fields.append(f"{offset} {_name(child)}: {spelled(_type(child))}")
        else:
            fields += _fields(_type(child), offset)
    return fields


def _structure(die) -> dict:
    return {"size": _number(die, "DW_AT_byte_size"), "fields": _fields(die)}


def _is_complete(die) -> bool:
    return "DW_AT_declaration" not in die.attributes and _number(die, "DW_AT_byte_size") is not None


def _take(die, wanted: set[str], found: Declarations) -> None:
    tag = die.tag
    if tag == "DW_TAG_subprogram":
        if _name(die) in wanted and "DW_AT_external" in die.attributes:
            found.functions.setdefault(_name(die), signature(die))
    elif tag == "DW_TAG_typedef":
        target = _type(die)
        if _name(die) in wanted and target is not None and target.tag in STRUCTURES and _is_complete(target):
            found.structures.setdefault(_name(die), _structure(target))
    elif tag in STRUCTURES:
        if _name(die) in wanted and _is_complete(die):
            found.structures.setdefault(_name(die), _structure(die))
    elif tag == "DW_TAG_enumeration_type":
        for child in die.iter_children():
            if child.tag == "DW_TAG_enumerator" and _name(child) in wanted:
                found.constants.setdefault(_name(child), _number(child, "DW_AT_const_value"))


def read(path, wanted: set[str]) -> Declarations:
    """The wanted names among the file's external declarations; the first one of each name counts."""
    found = Declarations()
    with open(path, "rb") as file:
        information = ELFFile(file).get_dwarf_info()
        for unit in information.iter_CUs():
            for die in unit.get_top_DIE().iter_children():
                _take(die, wanted, found)
    return found
