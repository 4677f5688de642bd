/**
 * Opens the traces if the user set an endpoint for them.
 *
 * @module
 */

import { resolve } from "node:path";
import { samplerOf, SpanExporter } from "../audit/span_exporter.ts";
import { SpanTracer, type Traces } from "../audit/spans.ts";
import { hasTraceEndpoint, OTLP } from "../config/network_names.ts";
import type { CheckReport } from "../core/check.ts";
import { traceConfigOf, type TraceSettings } from "../config/traces.ts";
import type { App } from "./app.ts";

/**
 * Opens the traces. Sends nothing yet. Returns undefined if the variables are invalid or disable
 * them.
 */
export function openTraces(app: App): Traces | undefined {
  const { log } = app;
  const config = traceConfigOf(app.loaded().environment);
  if (config.kind === "invalid") log.warn(`No traces are sent: ${config.problem}. ${config.hint}`);
  if (config.kind !== "on") return undefined;
  for (const warning of config.warnings) log.warn(warning);
  const exporter = exporterOf(app, config.settings);
  return {
    tracer: new SpanTracer(exporter, samplerOf(config.settings.sampling)),
    [Symbol.asyncDispose]: () => exporter[Symbol.asyncDispose](),
  };
}

/** Reports where traces are sent, and whether the collector accepts them. */
export async function checkTraces(app: App): Promise<CheckReport> {
  const name = "traces";
  const config = traceConfigOf(app.loaded().environment);
  if (config.kind === "off") {
    const { environment } = app.loaded();
    const why = hasTraceEndpoint(environment) ? "switched off" : `${OTLP}ENDPOINT is not set`;
    return { name, ok: true, message: `none are sent: ${why}` };
  }
  if (config.kind === "invalid") {
    const { problem: message, hint } = config;
    return { name, ok: true, warns: true, message, hint };
  }
  const { url, encoding } = config.settings;
  await using exporter = exporterOf(app, config.settings);
  const why = await exporter.check();
  const { origin, pathname } = new URL(url);
  const where = `sent to ${origin}${pathname}, as ${encoding}`;
  if (why === undefined) return { name, ok: true, message: where };
  const hint = `Look at the collector, or change ${OTLP}ENDPOINT`;
  return { name, ok: true, warns: true, message: `${where}: ${why}`, hint };
}

/** Returns an exporter. Its requests pass the same checks as all other requests of PML. */
function exporterOf(app: App, settings: TraceSettings): SpanExporter {
  const { redactor } = app.parts;
  // A header can contain a key, also after the name of a scheme, as in `Bearer KEY`.
  for (const value of Object.values(settings.headers)) {
    redactor.register(value);
    redactor.register(value.slice(value.indexOf(" ") + 1));
  }
  const { ca, cert, key } = settings.certificates;
  const toAbsolute = (path: string | undefined) => path === undefined ? undefined : resolve(path);
  const certificates = { ca: toAbsolute(ca), cert: toAbsolute(cert), key: toAbsolute(key) };
  return new SpanExporter({ ...settings, certificates }, {
    log: app.log,
    redactor,
    // The last spans are sent while PML is closing, which opens no call path then.
    openFetch: async () => (await (app.openCallPath ?? app.callPath())).machine.fetch,
  });
}
