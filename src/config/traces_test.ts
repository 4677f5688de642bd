import assert from "node:assert/strict";
import { hasTraceEndpoint } from "./network_names.ts";
import { traceConfigOf, type TraceSettings } from "./traces.ts";

type Variables = Readonly<Record<string, string>>;

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: "https://c.example/base/" };

function kindOf(variables: Variables): string {
  return traceConfigOf(new Map(Object.entries(variables))).kind;
}

function settingsOf(variables: Variables): TraceSettings {
  const config = traceConfigOf(new Map(Object.entries({ ...ENDPOINT, ...variables })));
  assert.ok(config.kind === "on", config.kind);
  return config.settings;
}

Deno.test("traces are off without an endpoint, and where the variables switch them off", () => {
  assert.equal(kindOf({}), "off");
  assert.equal(kindOf({ OTEL_EXPORTER_OTLP_HEADERS: "a=b" }), "off");
  assert.equal(kindOf({ OTEL_EXPORTER_OTLP_ENDPOINT: "${ENDPOINT}" }), "off");
  assert.equal(kindOf({ ...ENDPOINT, OTEL_SDK_DISABLED: "TRUE" }), "off");
  assert.equal(kindOf({ ...ENDPOINT, OTEL_TRACES_EXPORTER: "none" }), "off");
  assert.equal(kindOf({ ...ENDPOINT, OTEL_TRACES_EXPORTER: "console, otlp" }), "on");
  assert.equal(hasTraceEndpoint(new Map([["OTEL_EXPORTER_OTLP_ENDPOINT", " "]])), false);
});

Deno.test("an endpoint or a protocol that PML cannot use is a problem", () => {
  for (const url of ["c.example", "file:///x", "https://u:p@c.example"]) {
    assert.equal(kindOf({ OTEL_EXPORTER_OTLP_ENDPOINT: url }), "invalid", url);
  }
  assert.equal(kindOf({ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }), "invalid");
});

Deno.test("the variables for traces come before those for all signals", () => {
  const { url, encoding, headers, timeoutMs, isGzip } = settingsOf({
    OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/protobuf",
    OTEL_EXPORTER_OTLP_HEADERS: "a=1,b=2%2C3, bad ,=x,percent=50%",
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: "a=own",
    OTEL_EXPORTER_OTLP_TIMEOUT: "5",
    OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: "gzip",
  });
  assert.equal(url, "https://c.example/base/v1/traces");
  assert.deepEqual([encoding, timeoutMs, isGzip], ["protobuf", 100, true]);
  assert.deepEqual(headers, { a: "own", b: "2,3", percent: "50%" });
  const own = settingsOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://d.example/x" });
  assert.equal(own.url, "https://d.example/x");
});

Deno.test("the sampler, the queue and the resource have their defaults and bounds", () => {
  const { sampling, queueMax, batchMax, delayMs, resource } = settingsOf({
    OTEL_BSP_MAX_QUEUE_SIZE: "10",
    OTEL_BSP_SCHEDULE_DELAY: "x",
    OTEL_RESOURCE_ATTRIBUTES: "service.name=from-list,team=a",
  });
  assert.deepEqual(sampling, { share: 1, isParentBased: true });
  assert.deepEqual([queueMax, batchMax, delayMs], [10, 10, 5_000]);
  assert.deepEqual(resource, { "service.name": "from-list", team: "a" });
  const ratio = { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.25" };
  assert.deepEqual(settingsOf(ratio).sampling, { share: 0.25, isParentBased: false });
  for (
    const odd of [{ ...ratio, OTEL_TRACES_SAMPLER_ARG: "7" }, { OTEL_TRACES_SAMPLER: "toString" }]
  ) {
    const config = traceConfigOf(new Map(Object.entries({ ...ENDPOINT, ...odd })));
    assert.ok(config.kind === "on" && config.warnings.length === 1);
  }
});
