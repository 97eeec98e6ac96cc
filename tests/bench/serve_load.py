"""Requests per second and latency of `episodica serve` on this machine: `python tests/bench/serve_load.py MODEL IMAGE`.

Starts the command as a process of its own, and asks it from threads of this one: each sends a request, waits for the
answer and sends the next. All answers to one image must be the same. The CPU time of the server (Linux) is what remains
of a request where nothing else works on the machine.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import quantiles

import httpx


def load(
    url: str, files: list[tuple[str, tuple[str, bytes]]], clients: int, seconds: float
) -> tuple[list[float], set[str]]:
    """Seconds of each request, and the distinct answers."""
    times: list[float] = []
    answers: set[str] = set()
    ends = time.perf_counter() + seconds

    def client() -> None:
        with httpx.Client(timeout=60) as session:
            while (started := time.perf_counter()) < ends:
                answer = session.post(f"{url}classify", files=files)
                times.append(time.perf_counter() - started)
                answers.add(json.dumps(answer.raise_for_status().json()["answers"]))

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, answers


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("image", type=Path)
    parser.add_argument("--images", type=int, default=1, help="of a request")
    parser.add_argument("--seconds", type=float, default=10)
    asked = parser.parse_args()
    files = [("images", (asked.image.name, asked.image.read_bytes()))] * asked.images
    command = [sys.executable, "-c", "from episodica.cli import main; main()", "serve", asked.model, "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = next(word for line in server.stdout for word in line.split() if word.startswith("http"))
        load(url, files, 1, 1)
        out = sys.stdout
        out.write("| clients | requests/s | p50 ms | p95 ms | p99 ms | server's CPU ms |\n|---|---|---|---|---|---|\n")
        for clients in (1, 4, 16):
            spent = cpu_seconds(server.pid)
            times, answers = load(url, files, clients, asked.seconds)
            cpu = 1e3 * (cpu_seconds(server.pid) - spent) / len(times)
            assert len(answers) == 1, "two answers to one image"
            cut = quantiles(times, n=100)
            rate = len(times) / asked.seconds
            shown = " | ".join(f"{1e3 * cut[place - 1]:.0f}" for place in (50, 95, 99))
            out.write(f"| {clients} | {rate:.0f} | {shown} | {cpu:.1f} |\n")
            out.flush()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
