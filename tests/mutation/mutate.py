#!/usr/bin/env python3
"""Plants small faults in the code, one at a time, and counts those that a test notices.

A fault (a mutant) is an entry of mutants/*.toml. Its file is copied with the fault into a scratch folder, the
sources that it names are compiled with the commands of compile_commands.json, and the test is linked again with
those objects ahead of the libraries: no other object is built, and neither the sources nor the build folder are
written to. The build folder must hold up-to-date tests of a Ninja build.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from mutant_build import ROOT, Build

TIMEOUT = 600  # seconds a test may take; a fault that makes it hang is noticed so


@dataclass
class Mutant:
    name: str
    file: str
    old: str
    new: str
    why: str
    # "ops/norm_test": the cases of tests/ops/norm_test.cpp; "torture": all of a folder;
    # "ops/cases_test:softmax": of those that TESSERA_CASES chooses
    tests: list
    compile: list = field(default_factory=list)  # sources that see a fault in a header; else the file itself
    program: bool = False  # the test runs the program, which is linked again too
    emulated: bool = False  # in a CUDA kernel: planted in an emulated build, where no other is
    bf16: str = ""  # the kind of bf16 kernels that its tests run by the emulator: "avx512bf16" or "amx"
    quick: bool = False  # one of the few that continuous integration plants
    survives: str = ""  # why no test can notice it; counted apart

    def sources(self):
        return self.compile or [self.file]

    def pattern(self):  # blanks and line ends between words count as the same
        return r"\s+".join(re.escape(word) for word in self.old.split())

    def mutated(self):
        """The file's text with the fault, or a reason why it cannot be planted."""
        path = ROOT / self.file
        if not path.exists():
            return None, "there is no such file"
        text = path.read_text()
        found = list(re.finditer(self.pattern(), text))
        if len(found) != 1:
            return None, f"its old text stands there {len(found)} times, wanted once"
        start, end = found[0].span()
        return text[:start] + self.new + text[end:], ""


def read_mutants(folder):
    mutants = []
    for path in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["mutant"]:
            mutants.append(Mutant(**entry))
    names = [m.name for m in mutants]
    for name in names:
        if names.count(name) > 1:
            sys.exit(f"mutate: two mutants are called {name}")
    return mutants


def check_list(mutants):
    """Prints the mutants that the code has outgrown; their count."""
    bad = 0
    for m in mutants:
        reason = m.mutated()[1]
        missing = [s for s in m.sources() if not (ROOT / s).exists()]
        missing += [t for t in m.tests
                    if "/" in t and not (ROOT / "tests" / (t.split(":")[0] + ".cpp")).exists()]
        if missing:
            reason = reason or f"{missing[0]} does not exist"
        if reason:
            print(f"{m.name}: does not apply to {m.file}: {reason}")
            bad += 1
    return bad


def run_test(executable, test, environment):
    """(whether all cases pass, how many ran, what the run printed last)."""
    command = [str(executable), "--no-intro", "--abort-after=1"]
    name, _, cases = test.partition(":")
    if "/" in name:
        command.append(f"--source-file=*/tests/{name}.cpp")
    if cases:
        environment = dict(environment, TESSERA_CASES=cases + ",")
    try:
        done = subprocess.run(command, cwd=environment["TMPDIR"], capture_output=True, text=True, errors="replace",
                              timeout=TIMEOUT, env=environment)
    except subprocess.TimeoutExpired:
        return False, 1, "ran out of time"
    ran = re.search(r"test cases:\s*(\d+)", done.stdout)
    return done.returncode == 0, int(ran.group(1)) if ran else 0, (done.stdout + done.stderr)[-1500:]


class Verdicts:
    """What was found so far, in the build folder, so that a run that was broken off goes on."""

    def __init__(self, path, anew):
        self.path = path
        self.known = {}
        if anew:
            path.unlink(missing_ok=True)
        if path.exists():
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                self.known[entry["key"]] = (entry["verdict"], entry["by"])

    def key(self, m):
        text = m.mutated()[0] or ""
        return m.name + " " + hashlib.sha256((text + " ".join(m.tests)).encode()).hexdigest()[:16]

    def add(self, m, verdict, by):
        self.known[self.key(m)] = (verdict, by)
        with self.path.open("a") as out:
            out.write(json.dumps({"key": self.key(m), "verdict": verdict, "by": by}) + "\n")


class Harness:
    def __init__(self, build, trust, verbose):
        self.build = build
        self.trust = trust
        self.verbose = verbose
        self.sound = {}

    def environment(self, scratch, bf16, program=None):
        temporary = scratch / "tmp"
        temporary.mkdir(exist_ok=True)
        environment = dict(os.environ, TMPDIR=str(temporary), TESSERA_EMULATE=bf16)
        if program:
            environment["TESSERA_PROGRAM"] = str(program)
        return environment

    def target(self, test):
        return f"tests/test_{test.split('/')[0]}"

    def expect_sound(self, test, bf16):
        """Stops unless the test passes, and has cases, without any fault."""
        if self.trust or (test, bf16) in self.sound:
            return
        with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
            passes, cases, text = run_test(self.build.folder / self.target(test), test,
                                           self.environment(Path(folder), bf16))
        if not passes or cases == 0:
            sys.exit(f"mutate: without any fault {test} runs {cases} cases and "
                     f"{'passes' if passes else 'fails'}:\n{text}")
        self.sound[test, bf16] = True

    def judge(self, m):
        """'caught', 'survived', 'does not apply' or 'does not build', and by what or why."""
        text, reason = m.mutated()
        if reason:
            return "does not apply", reason
        for test in m.tests:
            self.expect_sound(test, m.bf16)
        scratch = Path(tempfile.mkdtemp(prefix="mutate-"))
        try:
            (scratch / m.file).parent.mkdir(parents=True)
            (scratch / m.file).write_text(text)
            objects = []
            for source in m.sources():
                made, reason = self.build.compile(source, scratch, m.file)
                if made is None:
                    return "does not build", reason
                objects += made
            program = None
            if m.program:
                program, reason = self.build.link("tessera", objects, scratch)
                if not program:
                    return "does not build", reason
            executables = {}
            for test in m.tests:
                target = self.target(test)
                if target not in executables:
                    executables[target], reason = self.build.link(target, objects, scratch)
                    if not executables[target]:
                        return "does not build", reason
                passes, _, text = run_test(executables[target], test, self.environment(scratch, m.bf16, program))
                if not passes:
                    if self.verbose:
                        print(text)
                    return "caught", test
            return "survived", ", ".join(m.tests)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only these mutants")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--check", action="store_true", help="only see whether every mutant applies")
    parser.add_argument("--quick", action="store_true", help="only those that are marked quick")
    parser.add_argument("--anew", action="store_true", help="forget what a former run has found")
    parser.add_argument("--trust", action="store_true", help="do not run the tests without a fault first")
    parser.add_argument("--verbose", action="store_true", help="print what the failing test said")
    parser.add_argument("--least", type=float, default=0.95, help="the share that must be caught")
    options = parser.parse_args()
    mutants = read_mutants(Path(__file__).parent / "mutants")
    bad = check_list(mutants)
    if bad or options.check:
        print(f"{len(mutants)} mutants, {bad} do not apply")
        return 1 if bad else 0
    unknown = set(options.names) - {m.name for m in mutants}
    if unknown:
        sys.exit(f"mutate: there is no mutant {sorted(unknown)[0]}")
    build = Build(options.build)
    chosen = [m for m in mutants if (not options.names or m.name in options.names)
              and (not options.quick or m.quick) and m.emulated == build.is_emulated()]
    harness = Harness(build, options.trust, options.verbose)
    verdicts = Verdicts(options.build / "mutants.jsonl", options.anew)
    if options.names or options.quick:
        verdicts.known = {}  # they are asked for: plant them again
    counts = dict.fromkeys(["caught", "survived", "explained", "does not apply", "does not build"], 0)
    for m in chosen:
        start = time.time()
        if verdicts.key(m) in verdicts.known:
            verdict, by = verdicts.known[verdicts.key(m)]
        else:
            verdict, by = harness.judge(m)
            verdicts.add(m, verdict, by)
        if verdict == "survived" and m.survives:
            verdict, by = "explained", m.survives
        counts[verdict] += 1
        print(f"{m.name:<44} {verdict:<14} {time.time() - start:5.1f} s  {by}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()), f"of {len(chosen)}")
    broken = counts["does not apply"] + counts["does not build"]
    return 0 if broken == 0 and counts["caught"] >= options.least * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
