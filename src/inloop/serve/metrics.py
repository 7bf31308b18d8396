"""What the endpoint did, in Prometheus' text format: our own registry beside the engine's meters."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ["route", "status"]
        self.requests = Counter("inloop_requests", "Requests by route and status.", labels, registry=self.registry)
        self.seconds = Histogram(
            "inloop_request_seconds", "From the whole request to the last byte.", ["route"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.first_byte = Histogram(
            "inloop_first_byte_seconds", "From the whole request to the first byte of the answer.", ["route"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.in_flight = Gauge("inloop_requests_in_flight", "Admitted, not yet answered.", registry=self.registry)
        self.weights = Gauge("inloop_weight_version", "Version of the present weights.", registry=self.registry)
        self.swaps = Gauge("inloop_swaps", "Checkpoints swapped in, and refused.", ["outcome"], registry=self.registry)

    def text(self) -> str:
        return generate_latest(self.registry).decode()
