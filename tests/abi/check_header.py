#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Our mpi.h against MPICH 5's mpi_abi.h: the same constants, types and prototypes, both ways.

Declarations are compared by the compiler: those of one header are repeated after the other, which C
accepts only if the types agree. Constants are compared by programs that print type and value.
"""
import argparse
import pathlib
import re
import subprocess
import sys

import mpich

# Extensions and non-standard names of MPICH.
EXTENSION = re.compile(r"P?MPIX_")

# Names from before the ABI, which our header gives to what the ABI has.
OLDER = re.compile(r"MPI_Fint|MPI_F08_status|P?MPI_\w+_(c|f|f08)2(c|f|f08)")

# Macros that are no constants of MPI: include guards and the integer types' set-up.
NOT_CONSTANTS = re.compile(r"MPI_H_ABI|MACADAM_MPI_H|MPI_ABI_(Aint|Offset|Count)")

failures: list[str] = []


def fail(text: str) -> None:
    failures.append(text)


def run(command, **more) -> str:
    result = subprocess.run(command, capture_output=True, text=True, **more)
    if result.returncode != 0:
        fail(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


class Header:
    def __init__(self, cc: str, path: pathlib.Path):
        self.path = path.resolve()
        text = run([cc, "-std=c11", "-E", "-P", path])
        text = text[text.rindex("typedef", 0, text.index(" MPI_Aint;")):]  # past <stdint.h>
        self.statements = [" ".join(s.split()) for s in self.split(text)]
        self.functions = {m.group(1): s for s in self.statements
                          if (m := re.match(r"(?!typedef)[\w *]*?\b(P?MPI\w+) ?\(", s))}
        self.types = {m.group(1): s for s in self.statements
                      if (m := re.match(r"typedef [^{]*?\(?\*? ?(MPI\w+)\)?(?:\(.*\))?$", s))}
        enums = re.findall(r"enum[^{;]*\{([^}]*)\}", text)
        macros = re.findall(r"#define (MPI\w+) (?!.*\()", run([cc, "-E", "-dM", path]))
        macros += re.findall(r"#define (MPI\w+) \(\(", run([cc, "-E", "-dM", path]))
        self.constants = {name for body in enums for name in re.findall(r"\b(MPI\w+)\s*=", body)}
        self.constants |= {m for m in macros if not NOT_CONSTANTS.fullmatch(m)}
        for names in (self.functions, self.types):
            for name in [n for n in names if EXTENSION.match(n) or OLDER.fullmatch(n)]:
                del names[name]
        self.constants = {n for n in self.constants
                          if not EXTENSION.match(n) and not OLDER.fullmatch(n)}

    @staticmethod
    def split(text: str):
        """Declarations, without the bodies of enumerations and of MPI_Status."""
        depth, start = 0, 0
        for i, c in enumerate(text):
            depth += (c == "{") - (c == "}")
            if c == ";" and depth == 0:
                yield text[start:i].strip()
                start = i + 1


def same_names(what: str, ours: set[str], theirs: set[str]) -> None:
    for name in sorted(ours - theirs):
        fail(f"{what} {name}: in our header only")
    for name in sorted(theirs - ours):
        fail(f"{what} {name}: in MPICH's header only")


def repeat_declarations(cc: str, header: Header, other: Header, work: pathlib.Path) -> None:
    """Compiles the declarations of `other` after `header`."""
    lines = [f'#include "{header.path}"']
    lines += [s + ";" for name, s in other.types.items() if name in header.types]
    lines += [s + ";" for name, s in other.functions.items() if name in header.functions]
    source = work / f"declarations_after_{header.path.stem}.c"
    source.write_text("\n".join(lines) + "\n")
    run([cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", source])


def values(cc: str, header: Header, constants: set[str], work: pathlib.Path) -> dict[str, str]:
    """Type and value of every constant, told by a program built with the header."""
    pointers = sorted(n for n, s in header.types.items() if re.search(r"\* ?MPI\w+$", s))
    pointers += ["void*", "char**", "char***", "int*", "MPI_Status*"]
    # Callbacks, without second names: no type may be twice in a _Generic.
    pointers += sorted(n + "*" for n, s in header.types.items()
                       if s.endswith(")") and not n.endswith(("_fn", "MPI_Copy_function",
                                                              "MPI_Delete_function")))
    generic = ", ".join(f'{t}: "{t}"' for t in ["int", "long", *pointers])
    lines = ["#include <stdio.h>", f'#include "{header.path}"',
             f"#define TYPE(x) _Generic((x), {generic})", "int main(void) {"]
    lines += [f'  printf("{c} %s %lld\\n", TYPE({c}), (long long)(intptr_t)({c}));'
              for c in sorted(constants)]
    sizes = ["MPI_Status", "MPI_Aint", "MPI_Offset", "MPI_Count", "MPI_T_cb_safety"]
    lines += [f'  printf("sizeof_{t} size %d\\n", (int)sizeof({t}));' for t in sizes]
    for member in ("MPI_SOURCE", "MPI_TAG", "MPI_ERROR", "MPI_internal"):
        lines.append(f'  printf("offset_{member} offset %d\\n", '
                     f"(int)__builtin_offsetof(MPI_Status, {member}));")
    source = work / f"values_of_{header.path.stem}.c"
    source.write_text("\n".join(lines + ["  return 0;", "}"]) + "\n")
    program = source.with_suffix("")
    run([cc, "-std=c11", "-o", program, source])
    return dict(line.split(" ", 1) for line in run([program]).splitlines())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--header", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--venv", default="")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    arguments = parser.parse_args()
    venv, work, cc = mpich.locate(arguments.venv, arguments.work), arguments.work, arguments.cc
    work.mkdir(parents=True, exist_ok=True)

    ours, theirs = Header(cc, arguments.header), Header(cc, venv / "include/mpi_abi.h")
    same_names("function", set(ours.functions), set(theirs.functions))
    same_names("type", set(ours.types), set(theirs.types))
    same_names("constant", ours.constants, theirs.constants)
    repeat_declarations(cc, ours, theirs, work)
    repeat_declarations(cc, theirs, ours, work)

    both = ours.constants & theirs.constants
    our_values, their_values = (values(cc, h, both, work) for h in (ours, theirs))
    for name in sorted(our_values.keys() | their_values.keys()):
        if our_values.get(name) != their_values.get(name):
            fail(f"constant {name}: ours is {our_values.get(name)}, "
                 f"MPICH's {their_values.get(name)}")

    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    for standard in ("c99", "c11", "c17"):
        run([cc, f"-std={standard}", *strict, "-x", "c", ours.path])
    for standard in ("c++11", "c++20"):
        run([arguments.cxx, f"-std={standard}", *strict, "-x", "c++", ours.path])

    count = sum(name.startswith("MPI_") for name in ours.functions)
    if count != 662:
        fail(f"our header declares {count} MPI_ functions; the standard has 662")
    print(f"{len(ours.functions)} functions, {len(ours.types)} types, {len(our_values)} values "
          f"compared; {len(failures)} failures")
    print("\n".join(failures[:40]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
