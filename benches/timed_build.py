"""Builds an ONNX model for one target and prints the seconds that the build call took."""

import sys
import time

import tensorrt_rtx as trt

logger = trt.Logger(trt.Logger.ERROR)
builder = trt.Builder(logger)
network = builder.create_network(0)
parser = trt.OnnxParser(network, logger)
if not parser.parse_from_file(sys.argv[1]):
    sys.exit("the model does not parse")
config = builder.create_builder_config()
config.num_compute_capabilities = 1
config.set_compute_capability(trt.ComputeCapability.SM89, 0)
start = time.perf_counter()
engine = builder.build_serialized_network(network, config)
took = time.perf_counter() - start
if engine is None:
    sys.exit("no engine")
print(f"{took:.6f}")
