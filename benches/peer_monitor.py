"""A progress monitor as people usually write one: a lock, a dictionary by phase name, a repaint at every step.

Times its own callbacks, one by one, and prints one JSON object, in nanoseconds. The call through the Python binding comes
on top in a real build and is not counted here, which favours this side.
"""

import json
import os
import subprocess
import sys
import threading
import time


class RepaintingMonitor:
    def __init__(self, out):
        self.lock = threading.Lock()
        self.out = out
        self.phases = {}

    def phase_start(self, name, parent, steps):
        with self.lock:
            depth = self.phases[parent]["depth"] + 1 if parent in self.phases else 0
            self.phases[name] = {"depth": depth, "steps": steps, "done": 0}
            self.repaint()

    def step_complete(self, name, step):
        with self.lock:
            self.phases[name]["done"] = step + 1
            self.repaint()
            return True

    def repaint(self):
        lines = ["\x1b[H"]
        for name, phase in self.phases.items():
            share = phase["done"] / max(phase["steps"], 1)
            bar = "#" * int(share * 40)
            lines.append(f"{'  ' * phase['depth']}{name:<40} [{bar:<40}] {share:6.1%}\x1b[K\n")
        self.out.write("".join(lines))
        self.out.flush()


def main():
    calls = int(sys.argv[1])
    # A terminal, since that is what such a monitor repaints; another process reads it empty.
    master, terminal = os.openpty()
    reader = subprocess.Popen(["cat"], stdin=master, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(master)
    with open(terminal, "w") as out:
        monitor = RepaintingMonitor(out)
        names = ["Building engine", "Timing tactics", "Computing reformatting costs", "Timing graph nodes"]
        for i, name in enumerate(names):
            monitor.phase_start(name, names[i - 1] if i else None, calls)
        cost = []
        for i in range(calls):
            start = time.perf_counter_ns()
            monitor.step_complete(names[i & 3], i)
            cost.append(time.perf_counter_ns() - start)
    reader.kill()
    cost.sort()
    at = lambda share: cost[int(share * (calls - 1))]
    print(json.dumps({"calls": calls, "median": at(0.5), "p99": at(0.99), "p999": at(0.999), "worst": cost[-1]}))


main()
