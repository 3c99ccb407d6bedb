"""The compile and link commands of a build folder, by which mutate.py builds a test with a fault in it."""

import json
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Build:
    """The compile and link commands of a build folder."""

    def __init__(self, folder):
        self.folder = folder.resolve()
        self.compilations = {}
        for entry in json.loads((self.folder / "compile_commands.json").read_text()):
            # A kernel is compiled for several kinds of processors; the first one runs on all, and beside it the
            # one with emulated instructions.
            commands = self.compilations.setdefault(str(Path(entry["file"]).resolve()), [])
            if not commands or "bf16_emulator.dir" in entry["command"]:
                commands.append(shlex.split(entry["command"]))
        self.links = {}

    def is_emulated(self):
        return "TESSERA_CUDA:STRING=EMULATED" in (self.folder / "CMakeCache.txt").read_text()

    def link_command(self, target):
        if target not in self.links:
            listed = subprocess.run(["ninja", "-C", str(self.folder), "-t", "commands", target], check=True,
                                    capture_output=True, text=True).stdout.splitlines()
            command = listed[-1]  # ": && c++ ... -o TARGET ... && :"
            self.links[target] = [word for word in shlex.split(command) if word not in (":", "&&")]
        return self.links[target]

    def compile(self, source, scratch, mutated_file):
        """The objects of `source` in the scratch folder, whose headers go before the real ones, each with the
        name of its original; or an error."""
        made = []
        for command in self.compilations[str((ROOT / source).resolve())]:
            name, output = self.compile_one(command, source, scratch, mutated_file)
            if name is None:
                return None, output
            made.append((name, output))
        return made, None

    def compile_one(self, command, source, scratch, mutated_file):
        original = str((ROOT / source).resolve())
        command = [w for w in command if w != "ccache"]
        name = command[command.index("-o") + 1]
        output = scratch / "objects" / name
        output.parent.mkdir(parents=True, exist_ok=True)
        command[command.index("-o") + 1] = str(output)
        at = command.index("-c") + 1
        command[at] = str(scratch / source) if source == mutated_file else original
        command[1:1] = [f"-I{scratch}", "-w"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        return (name, output) if done.returncode == 0 else (None, done.stderr[-2000:])

    def other_kernels(self, names):
        """The kernels that a changed one calls or is called by: its kind's, instead of those that a start chooses."""
        kernels = "CMakeFiles/tessera_engine_any.dir"
        if not any(name.startswith(kernels) for name in names):
            return []
        found = [str(path.relative_to(self.folder)) for path in (self.folder / kernels).rglob("*.o")]
        return sorted(set(found) - set(names))

    def link(self, target, objects, scratch):
        """The executable `target` (tests/test_ops) with these objects in the place of their originals."""
        output = scratch / Path(target).name
        command = list(self.link_command(target))
        command[command.index("-o") + 1] = str(output)
        ahead = []
        for name, path in objects:
            if name in command:
                command[command.index(name)] = str(path)
            else:
                ahead.append(str(path))
        command[1:1] = ahead + self.other_kernels([name for name, _ in objects])
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        return output if done.returncode == 0 else None, done.stderr[-2000:]
