"""The table of made-up measurements, whose shares are known."""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import table

BENCH = {
    "device": {"name": "Made-up GPU", "multiprocessors": 132, "memory_bytes": 141 << 30, "runtime": 13000, "driver": 13000},
    "reference": {"copy_bytes_per_s": 4e12, "matmul_flops_per_s": 8e14},
    "kernels": [{"name": "fast", "bytes": 3.6e9, "median_s": 1e-3}, {"name": "slow", "bytes": 3.2e9, "median_s": 1e-3}],
    "attention": [{"name": "attention", "batch": 2, "seq": 1024, "heads": 12, "width": 64, "flops": 4e11, "median_s": 1e-3},
                  {"name": "attention_backward", "batch": 2, "seq": 1024, "heads": 12, "width": 64, "flops": 1e12, "median_s": 4e-3}],
    "steps": [{"model": "gpt2", "rows": 32, "seq": 1024, "parameters": 124, "flops": 4.8e13, "step_s": 0.1, "host_s": 0.001,
               "by_op": {"step_s": 0.11, "host_s": 0.022}, "plan_arena_bytes": 1000, "arena_bytes": 1000, "high_water_bytes": 1000,
               "engine_bytes": 2 << 30, "used_bytes": 3 << 30}],
}
PEER = {
    "torch": "2.11", "rates": {"copy_bytes_per_s": 4.1e12},
    "steps": [{"model": "gpt2", "way": "eager", "step_s": 0.2, "peak_reserved_bytes": 4 << 30}, {"model": "gpt2", "way": "compiled", "step_s": 0.125}],
    "attention": [{"backend": "cudnn", "batch": 2, "seq": 1024, "heads": 12, "width": 64, "forward_s": 7e-4, "backward_s": 2e-3},
                  {"backend": "flash", "batch": 2, "seq": 1024, "heads": 12, "width": 64, "failed": "not built in"}],
}
PREDICTED = {"gpt2": {"step_time_s": 0.104, "arena_bytes": 1000}}


def line_of(text, pattern):
    return next(line for line in text.splitlines() if re.match(pattern, line))


class Table(unittest.TestCase):
    def setUp(self):
        self.text = table.table(BENCH, PEER, PREDICTED)

    def expect(self, pattern, *words):
        line = line_of(self.text, pattern)
        for word in words:
            self.assertIn(word, line)

    def test_shares_of_what_was_measured(self):
        self.expect("fast", "3600", "1.00 ms", "90.0 %", "met")
        self.expect("slow", "80.0 %", "MISSED")
        self.expect("gpt2, foreshard +32", "100.00 ms", "60.0 %", "327680", "met")
        self.expect(r"gpt2 +1\.00 ms", "1.0 %", "22.00 ms", "20.0 %", "met")

    def test_peers_beside(self):
        self.expect("gpt2, FSDP2 eager", "200.00 ms", "30.0 %")
        self.expect("gpt2, FSDP2 compiled", "125.00 ms", "48.0 %", "met")
        self.expect("attention +2x", "400", "571", "70.0 %", "met")
        self.expect("attention_backward", "250", "500", "50.0 %", "MISSED")
        self.expect("copy", "4000 GB/s", "4100 GB/s")

    def test_prediction_and_memory(self):
        self.expect("gpt2, predicted", "104.00 ms", "+4.0 %", "met")
        self.expect(r"gpt2 +1000", "2.000 GiB", "3.000 GiB", "4.000 GiB", "met")

    def test_arena_off_by_a_byte_is_missed(self):
        self.text = table.table(BENCH, PEER, {"gpt2": {"step_time_s": 0.09, "arena_bytes": 1001}})
        self.expect(r"gpt2 +1000", "MISSED")
        self.expect("gpt2, predicted", "-10.0 %", "MISSED")

    def test_a_slower_step_than_the_peer_is_missed(self):
        self.text = table.table(BENCH, {"steps": [{"model": "gpt2", "way": "compiled", "step_s": 0.09}]}, {})
        self.expect("gpt2, FSDP2 compiled", "MISSED")

    def test_what_is_missing_is_said(self):
        text = table.table({}, {}, {})
        for part in ("device", "reference rates", "training steps", "kernels", "attention"):
            self.assertIn(f"{part}: not measured", text)
        alone = table.table({key: BENCH[key] for key in ("device", "steps", "kernels", "attention")}, {}, {})
        self.assertNotIn("MISSED", alone)

    def test_failures_are_told(self):
        self.assertIn("FAILED gpu_bench gpt2-xl: out of memory", table.table({"failed": {"gpt2-xl": "out of memory\nmore"}}, {}, {}))


if __name__ == "__main__":
    unittest.main()
