# SPDX-License-Identifier: BSD-3-Clause
"""Runs `macadam-simulate` and `macadam model` and reads what they print."""
import json
import os
import pathlib
import subprocess
import tempfile
import time

PRESETS = pathlib.Path(__file__).resolve().parent.parent / "presets"


def lines_of(output):
    """{figure: {parameter: value}} of lines `figure parameter value`."""
    found = {}
    for line in output.splitlines():
        words = line.split()
        if len(words) == 3:
            found.setdefault(words[0], {})[words[1]] = float(words[2])
    return found


def environment_with(settings=None):
    """The caller's environment with these settings, and none of its own: they must not change a
    figure."""
    others = {k: v for k, v in os.environ.items() if not k.startswith("MACADAM_")}
    return {**others, **(settings or {})}


LINE = 110


def compact(data, indent=""):
    """JSON text with as much in each line as fits."""
    text = json.dumps(data)
    if len(indent) + len(text) <= LINE or not isinstance(data, (dict, list)):
        return text
    inner = indent + " "
    parts = ([f"{json.dumps(key)}: {compact(value, inner)}" for key, value in data.items()]
             if isinstance(data, dict) else [compact(value, inner) for value in data])
    lines = [parts[0]]
    for part in parts[1:]:
        together = f"{lines[-1]}, {part}"
        if "\n" not in together and len(inner) + len(together) < LINE:
            lines[-1] = together
        else:
            lines.append(part)
    opening, closing = "{}" if isinstance(data, dict) else "[]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(lines) + f"\n{indent}{closing}"


def save(file, data):
    """Writes the data of a figure."""
    file.write_text(compact(data) + "\n", encoding="utf8")


class RunFailed(Exception):
    """A command ended with an error, or took longer than allowed."""


class Programs:
    """The programs of a build tree, each run allowed `seconds`."""

    def __init__(self, build, seconds):
        self.bin, self.seconds = pathlib.Path(build) / "bin", seconds
        self.bench = pathlib.Path(build) / "bench"
        for name in ("macadam-simulate", "macadam"):
            if not (self.bin / name).exists():
                raise RunFailed(f"{self.bin / name} is not there; build it with "
                                f"`cmake --build {build} --target macadam macadam-simulate`")

    def simulate(self, ranks, pattern, *parameters, preset="ndr", stack_kb=64, settings=None):
        """A pattern's results, with the real time, processor time and most memory of the run."""
        return self._json("macadam-simulate", "-n", ranks, "-p", preset, "--stack", stack_kb, "-q",
                          "--json", f"pattern:{pattern}", *parameters, settings=settings)

    def one_sided(self, experiment, ranks, *, preset, settings):
        """What an experiment of bench/one_sided gives: {figure: {parameter: value}}."""
        module = self.bench / "one_sided" / "experiments.so"
        if not module.exists():
            raise RunFailed(f"{module} is not there; build target bench_one_sided_module")
        output, _ = self._run("macadam-simulate", "-n", ranks, "-p", preset, "-q", module,
                              experiment, settings=settings)
        return lines_of(output)

    def model(self, ranks, receive, preset, settings=None):
        adapter = json.loads((PRESETS / f"{preset}.json").read_text())
        return self._json("macadam", "model", "--json", "--ranks", ",".join(map(str, ranks)),
                          "--receive", ",".join(receive), "--inline", adapter["inline_bytes"],
                          "--completion-depth", adapter["completion_depth"], settings=settings)

    def _json(self, program, *arguments, settings=None):
        output, run = self._run(program, *arguments, settings=settings)
        return {**json.loads(output), "run": run}

    def _run(self, program, *arguments, settings=None):
        """What a run prints, and what it took."""
        command = [str(self.bin / program), *map(str, arguments)]
        began = time.monotonic()
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
            child = subprocess.Popen(command, env=environment_with(settings), stdout=out,
                                     stderr=errors)
            status, usage = self._wait(child, began)
            took = time.monotonic() - began
            out.seek(0)
            errors.seek(0)
            shown = " ".join([*(f"{k}={v}" for k, v in (settings or {}).items()), *command])
            if status is None:
                raise RunFailed(f"{shown}: not done after {self.seconds} s")
            if status != 0:
                raise RunFailed(f"{shown}: ended with {status}\n{errors.read()[-1500:]}")
            return out.read(), {"real_s": round(took, 2),
                                "processor_s": round(usage.ru_utime + usage.ru_stime, 2),
                                "most_resident_bytes": usage.ru_maxrss << 10}

    def _wait(self, child, began):
        """Exit code (None: too long, ended here) and resources of `child`, by wait4."""
        ended_here = False
        while True:
            done, status, usage = os.wait4(child.pid, os.WNOHANG)
            if done:
                child.returncode = os.waitstatus_to_exitcode(status)
                return (None if ended_here else child.returncode), usage
            if not ended_here and time.monotonic() - began > self.seconds:
                child.kill()
                ended_here = True
            time.sleep(0.02)
