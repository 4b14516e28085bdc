"""Makes from src_c/ftdsp/manual.toml, for every operator of the FT DSP manual in it, the header, the C functions with the
checks that follow from the parameters, the export list and the rules. What the operator does stands in src_c/ftdsp/manual:

    void ft_op_softmax(FtCall *call, const FtSoftmax *a);

    generate_ftdsp.py --table manual.toml --exports exports.map --headers folder --output folder
"""

import argparse
import pathlib
import re

from understudy.kit import ft_manual

NOTES = """c64_, c128_: complex elements, real and imaginary part in turn; lengths count complex numbers.
_s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2."""
NOT_ARGUMENTS = ("mask", "private")  # of what an operator does
WIDE = {"float": "double", "half": "double", "double": "double", "int8_t": "double", "int16_t": "double", "int32_t": "double"}


def camel(name: str) -> str:
    return "Ft" + "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def wrapped(text: str, indent: str, separator: str = ", ") -> str:
    """A comma list in lines of at most 118 columns."""
    lines, line = [], ""
    for word in text.split(separator):
        if line and len(indent if lines else "") + len(line) + len(word) + 2 > 112:
            lines.append(line + ",")
            line = word
        else:
            line = f"{line}{separator}{word}" if line else word
    return f"\n{indent}".join([*lines, line])


def is_table(parameter) -> bool:
    return parameter.role == "table"


def declarator(operator, parameter, prefix: str) -> str:
    stars = "**" if parameter.role in ("table", "tensors") else "*" if parameter.pointer else ""
    const = "const " if parameter.const else ""
    return f"{const}{operator.c_type(parameter, prefix)} {stars}{parameter.name}"


def prototype(operator, prefix: str, space: str) -> str:
    other = "private" if space == "s" else "mask"
    parameters = [p for p in operator.parameters if p.role != other]
    text = ", ".join(declarator(operator, p, prefix) for p in parameters)
    return wrapped(f"void {operator.symbol(prefix, space)}({text})", "    ")


def declaration(operator, prefix: str, space: str) -> str:
    by_value = any(p.role == "value" and operator.c_type(p, prefix) == "half" for p in operator.parameters)
    return ("FTDSP_HALF_BY_VALUE\n" if by_value else "") + prototype(operator, prefix, space) + ";"


def comment(text: str) -> str:
    return "/* " + "\n * ".join(text.splitlines()).replace("\n * \n", "\n *\n") + " */"


def header(name: str, operators: list) -> str:
    guard = "FTDSP_" + re.sub(r"\W", "_", name).upper()
    parts = [comment("\n\n".join(operator.text for operator in operators if operator.text) + "\n\n" + NOTES),
             f"#ifndef {guard}\n#define {guard}\n", '#include "ftdsp_half.h"\n#include <stdbool.h>\n#include <stdint.h>\n',
             '#ifdef __cplusplus\nextern "C" {\n#endif\n']  # fmt: skip
    structures = list(dict.fromkeys(operator.structure.strip() for operator in operators if operator.structure))
    parts += [structure + "\n" for structure in structures]
    parts.append("\n".join(declaration(operator, *function) for operator in operators
                           for function in operator.functions()) + "\n")  # fmt: skip
    parts += [operator.extra.strip() + "\n" for operator in operators if operator.extra]
    parts.append("#ifdef __cplusplus\n}\n#endif\n\n#endif\n")
    return "\n".join(parts)


def alias(name: str, headers: list[str]) -> str:
    guard = "FTDSP_" + re.sub(r"\W", "_", name).upper()
    includes = "\n".join(f"#include <{header}>" for header in headers)
    return f"/* Another name of what these declare. */\n#ifndef {guard}\n#define {guard}\n\n{includes}\n\n#endif\n"


# ---- C: arguments, checks, entries ----


def member(operator, parameter) -> str:
    """The parameter in the arguments of all prefixes."""
    if parameter.role == "table":
        return f"void *const *{parameter.name}" if not parameter.const else f"const void *const *{parameter.name}"
    if parameter.role == "tensors":
        return f"{parameter.type} *const *{parameter.name}"
    if parameter.role in ("struct", "dims", "array", "ignored"):
        if parameter.type == "T" or parameter.type in operator.types:
            return f"const void *{parameter.name}"
        return f"const {parameter.type.replace('longlong', 'long long')} *{parameter.name}"
    if parameter.pointer:
        const = "" if parameter.is_written else "const "
        return f"{const}void *{parameter.name}"
    varies = parameter.type == "T" or parameter.type in operator.types
    return f"{'double' if varies else WIDE.get(parameter.type, parameter.type)} {parameter.name}"


def arguments_type(operator) -> str:
    members = [member(operator, p) for p in operator.parameters if p.role not in NOT_ARGUMENTS]
    members += [f"DType {letter}" for letter in operator.types]
    return "typedef struct {0} {{\n    {1};\n}} {0};\n".format(camel(operator.calls), ";\n    ".join(members))


def dtype_of(operator, parameter) -> str:
    if parameter.type == "T":
        return "call->dtype"
    if parameter.type in operator.types:
        return f"a->{parameter.type}"
    return f"DTYPE_{ft_manual.DTYPES[ft_manual.PREFIX_OF_C_TYPE[parameter.type]]}"


def factor(word: str) -> str:
    return word if word.isdigit() else f"a->{word}"


def checks(operator) -> list[str]:
    lines = []
    for p in operator.parameters:
        if p.role == "size" and p.type != "uint64_t":
            lines.append(f'ft_length(call, "{p.name}", (int64_t)a->{p.name});')
        elif p.role == "positive":
            lines.append(f'ft_positive(call, "{p.name}", a->{p.name});')
        elif p.role == "choice":
            legal = " || ".join(f"a->{p.name} == {value}" for value in p.values)
            words = ", ".join(map(str, p.values))
            lines.append(f'ft_require(call, {legal}, "{p.name}", "range",\n'
                         f'           FT_BAD_ATTRIBUTE, "{p.name} is %d, none of {words}", (int)a->{p.name});')  # fmt: skip
        elif p.role == "rank":
            lines.append(f'ft_rank(call, "{p.name}", a->{p.name}, {p.factors[0]});')
    for p in operator.parameters:
        if p.role == "dims":
            lines.append(f'const Shape {p.name} = ft_shape(call, "{p.name}", a->{p.name}, {factor(p.factors[0])});')
        elif p.role == "array":
            lines.append(f'ft_require(call, a->{p.name}, "{p.name}", "null", FT_BAD_POINTER, "{p.name} is NULL");')
    known = [p for p in operator.operands() if p.factors is not None]
    shapes = {p.name for p in operator.parameters if p.role == "dims"}
    used = {name for p in known for name in p.factors}
    lines += [f"(void){name};" for name in sorted(shapes - used)]
    for p in known:
        sizes = ", ".join(f"{word}.elements" if word in shapes else f"(int64_t){factor(word)}" for word in p.factors)
        lines.append(f'const int64_t {p.name}_count = ft_count(call, "{p.name}", {len(p.factors)}, (int64_t[]){{{sizes}}});')
    for p in known:
        check = "ft_optional" if p.optional else "ft_operand"
        lines.append(f'{check}(call, "{p.name}", a->{p.name}, {p.name}_count, {dtype_of(operator, p)});')
    for position, p in enumerate(known):
        for other_position, other in enumerate(known):
            if not p.is_written or other_position == position or (other.is_written and other_position > position):
                continue
            function = "ft_same_or_apart_bytes" if other.name in p.same else "ft_apart"
            lines.append(f'{function}(call, "{p.name}", a->{p.name}, {bytes_of(operator, p)}, "{other.name}", a->{other.name},\n'
                         f"         {bytes_of(operator, other)});")  # fmt: skip
    return lines


def bytes_of(operator, parameter) -> str:
    return f"ft_bytes({parameter.name}_count, {dtype_of(operator, parameter)})"


def entry(operator, prefix: str, space: str) -> str:
    symbol = operator.symbol(prefix, space)
    dtype = f"DTYPE_{ft_manual.DTYPES[prefix or 'fp']}"
    shared = "ft_by_mask" if operator.mask_decides else "ft_shared"
    begin = f'{shared}("{symbol}", {dtype}, core_mask)' if space == "s" else f'ft_private("{symbol}", {dtype})'
    given = [f"(const void *const *){p.name}" if is_table(p) and p.const else f"(void *const *){p.name}" if is_table(p)
             else p.name for p in operator.parameters if p.role not in NOT_ARGUMENTS]  # fmt: skip
    for letter, types in operator.types.items():
        given.append(f"DTYPE_{ft_manual.DTYPES[ft_manual.PREFIX_OF_C_TYPE[types.get(prefix, ft_manual.C_TYPES[prefix])]]}")
    call = wrapped(f"run_{operator.key}(&call, &({camel(operator.calls)}){{{', '.join(given)}}});", "        ")
    unread = "".join(f"    (void){p.name};\n" for p in operator.parameters if p.role == "private" and space == "p")
    return f"{prototype(operator, prefix, space)}\n{{\n    FT_CALL call = {begin};\n{unread}    {call}\n}}\n"


def entries(operator) -> str:
    name = camel(operator.calls)
    lines = "\n    ".join(line.replace("\n", "\n    ") for line in checks(operator))
    run = (f"static void run_{operator.key}(FtCall *call, const {name} *a)\n{{\n    {lines}\n    if (ft_ok(call)) {{\n"
           f"        ft_op_{operator.calls}(call, a);\n    }}\n}}\n")  # fmt: skip
    functions = "\n".join(entry(operator, *function) for function in operator.functions())
    return f'#include "{operator.header}"\n#include "ftdsp/manual.h"\n\n{run}\n{functions}'


def declarations(operators: list) -> str:
    shared = list({operator.calls: operator for operator in operators}.values())
    headers = sorted({operator.header for operator in operators if operator.structure})
    includes = "".join(f'#include "{name}"\n' for name in headers)
    body = "\n".join(f"{arguments_type(op)}void ft_op_{op.calls}(FtCall *call, const {camel(op.calls)} *a);\n" for op in shared)
    return ("/* The operators of the manual, written once for all prefixes: they are called when the checks that follow from\n"
            " * their parameters have passed. */\n#ifndef FTDSP_MANUAL_H\n#define FTDSP_MANUAL_H\n\n"
            f'#include "ftdsp/call.h"\n#include "ftdsp/shape.h"\n{includes}\n#include <stdbool.h>\n\n{body}\n#endif\n')  # fmt: skip


def exports(base: str, operators: list) -> str:
    names = sorted(operator.symbol(*function) for operator in operators for function in operator.functions())
    lines = "".join(f"    {name};\n" for name in names)
    return base.replace("  local:", f"{lines}  local:", 1)


def write(file: pathlib.Path, text: str) -> None:
    """Leaves a file alone that is as it should be, so that nothing is compiled again."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text("utf-8") != text:
        file.write_text(text, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=pathlib.Path, required=True)
    parser.add_argument("--exports", type=pathlib.Path, required=True)
    parser.add_argument("--headers", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    operators, aliases = ft_manual.read(options.table)
    sources, headers = options.output / "src" / "ftdsp", options.headers
    made = {sources / "manual.h": declarations(operators),
            options.output / "exports.map": exports(options.exports.read_text("utf-8"), operators),
            options.output / "rules/ftdsp/manual/rules.json": ft_manual.rules_json(operators)}  # fmt: skip
    made |= {sources / f"{operator.key}.c": entries(operator) for operator in operators}
    for name in {operator.header for operator in operators}:
        made[headers / name] = header(name, [operator for operator in operators if operator.header == name])
    made |= {headers / name: alias(name, others) for name, others in aliases.items()}
    for file, text in made.items():
        write(file, text)
    for stale in {*sources.glob("*"), *headers.rglob("*.h")} - set(made):
        stale.unlink()


if __name__ == "__main__":
    main()
