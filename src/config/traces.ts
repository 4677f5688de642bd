/**
 * The standard variables of OpenTelemetry for traces: where they are sent, and which are recorded.
 *
 * @module
 */

import { quoted } from "../core/json.ts";
import { OTLP } from "./network_names.ts";

/** Where PML sends traces, and which traces it records. */
export interface TraceSettings {
  /** The address of the collector. */
  readonly url: string;
  readonly encoding: "json" | "protobuf";
  /** The headers of each request, which may contain keys. */
  readonly headers: Readonly<Record<string, string>>;
  /** How long the collector may take to answer, in milliseconds. */
  readonly timeoutMs: number;
  readonly isGzip: boolean;
  /** The paths of certificates. */
  readonly certificates: {
    readonly ca: string | undefined;
    readonly cert: string | undefined;
    readonly key: string | undefined;
  };
  /** How long a span waits for other spans of its request to the collector, in milliseconds. */
  readonly delayMs: number;
  /** The maximum number of spans that wait. Further spans are lost. */
  readonly queueMax: number;
  /** The maximum number of spans in a request. */
  readonly batchMax: number;
  /** The attributes of this process. */
  readonly resource: Readonly<Record<string, string>>;
  readonly sampling: TraceSampling;
}

/** Which traces are recorded. */
export interface TraceSampling {
  /** The share of the traces that begin here, from 0 to 1. */
  readonly share: number;
  /** Whether the trace of a client is recorded if the client records it. */
  readonly isParentBased: boolean;
}

/** The settings, or why there are none although an endpoint is set. */
export type TraceConfig =
  | { readonly kind: "on"; readonly settings: TraceSettings; readonly warnings: readonly string[] }
  | { readonly kind: "off" }
  | { readonly kind: "invalid"; readonly problem: string; readonly hint: string };

const TRACES_PATH = "v1/traces";
const PROTOCOLS: Readonly<Record<string, TraceSettings["encoding"]>> = {
  "http/json": "json",
  "http/protobuf": "protobuf",
};

/** Reads variables by their names. */
interface Variables {
  get(name: string): string | undefined;
}

/** Reads the variables. */
export function traceConfigOf(variables: Variables): TraceConfig {
  const endpoint = endpointOf(variables);
  const isDisabled = /^true$/i.test(textOf(variables, "OTEL_SDK_DISABLED") ?? "");
  const exporters = (textOf(variables, "OTEL_TRACES_EXPORTER") ?? "otlp").split(/\s*,\s*/);
  if (endpoint === undefined || isDisabled || !exporters.includes("otlp")) return { kind: "off" };
  const url = URL.parse(endpoint.url);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    return invalid(`${endpoint.name} is no address`, "Set it to an address such as " + EXAMPLE);
  }
  if (url.username !== "" || url.password !== "") {
    return invalid(
      `${endpoint.name} contains a user name or a password`,
      `Set ${OTLP}HEADERS to "authorization=Basic ..." instead`,
    );
  }
  const protocol = readOption(variables, "PROTOCOL") ?? "http/protobuf";
  const encoding = PROTOCOLS[protocol];
  if (encoding === undefined) {
    return invalid(
      `PML cannot send ${quoted(protocol, 50)}`,
      `Set ${OTLP}TRACES_PROTOCOL to http/json or http/protobuf, and the port of OTLP over HTTP`,
    );
  }
  const warnings: string[] = [];
  const settings: TraceSettings = {
    url: url.href,
    encoding,
    headers: { ...listOf(variables, "HEADERS"), ...listOf(variables, "TRACES_HEADERS") },
    timeoutMs: numberOf(readOption(variables, "TIMEOUT"), {
      usual: 10_000,
      least: 100,
      most: 60_000,
    }),
    isGzip: readOption(variables, "COMPRESSION") === "gzip",
    certificates: {
      ca: readOption(variables, "CERTIFICATE"),
      cert: readOption(variables, "CLIENT_CERTIFICATE"),
      key: readOption(variables, "CLIENT_KEY"),
    },
    ...batchingOf(variables),
    resource: resourceOf(variables),
    sampling: samplingOf(variables, warnings),
  };
  return { kind: "on", settings, warnings };
}

const EXAMPLE = "https://collector.example:4318";

function invalid(problem: string, hint: string): TraceConfig {
  return { kind: "invalid", problem, hint };
}

/** Returns the address for traces, with the name of its variable. */
function endpointOf(
  variables: Variables,
): { readonly name: string; readonly url: string } | undefined {
  const tracesUrl = textOf(variables, `${OTLP}TRACES_ENDPOINT`);
  if (tracesUrl !== undefined) return { name: `${OTLP}TRACES_ENDPOINT`, url: tracesUrl };
  const base = textOf(variables, `${OTLP}ENDPOINT`);
  if (base === undefined) return undefined;
  return { name: `${OTLP}ENDPOINT`, url: `${base}${base.endsWith("/") ? "" : "/"}${TRACES_PATH}` };
}

function readOption(variables: Variables, name: string): string | undefined {
  return textOf(variables, `${OTLP}TRACES_${name}`) ?? textOf(variables, `${OTLP}${name}`);
}

/** Returns the value of a variable; undefined if it is blank, or has a variable that is not set. */
function textOf(variables: Variables, name: string): string | undefined {
  const value = variables.get(name)?.trim() ?? "";
  return value === "" || value.includes("${") ? undefined : value;
}

function batchingOf(
  variables: Variables,
): Pick<TraceSettings, "delayMs" | "queueMax" | "batchMax"> {
  const optionOf = (name: string, usual: number, most: number) =>
    numberOf(textOf(variables, `OTEL_BSP_${name}`), { usual, least: 1, most });
  // Larger than the defaults of the standard (2,048 and 512): a request costs as much as 2,000
  // spans.
  const queueMax = optionOf("MAX_QUEUE_SIZE", 16_384, 100_000);
  return {
    delayMs: optionOf("SCHEDULE_DELAY", 5_000, 3_600_000),
    queueMax,
    batchMax: Math.min(optionOf("MAX_EXPORT_BATCH_SIZE", 4_096, 10_000), queueMax),
  };
}

function numberOf(
  text: string | undefined,
  { usual, least, most }: {
    readonly usual: number;
    readonly least: number;
    readonly most: number;
  },
): number {
  const number = Number(text ?? usual);
  return Number.isFinite(number) ? Math.min(Math.max(Math.round(number), least), most) : usual;
}

/** Reads `name=value` pairs, separated by commas, with percent-encoded values. */
function listOf(variables: Variables, name: string): Record<string, string> {
  return pairsIn(textOf(variables, `${OTLP}${name}`));
}

function pairsIn(text = ""): Record<string, string> {
  const pairs = text.split(",").flatMap((pair) => {
    const sign = pair.indexOf("=");
    const key = pair.slice(0, sign).trim();
    return sign <= 0 || key === ""
      ? []
      : [[key, decodeValue(pair.slice(sign + 1).trim())] as const];
  });
  return Object.fromEntries(pairs);
}

function decodeValue(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a plain text with a percent sign
  }
}

function resourceOf(variables: Variables): Record<string, string> {
  const attributes = pairsIn(textOf(variables, "OTEL_RESOURCE_ATTRIBUTES"));
  const name = textOf(variables, "OTEL_SERVICE_NAME") ?? attributes["service.name"] ?? "pml";
  return { ...attributes, "service.name": name };
}

/** The samplers by their names. The argument is `OTEL_TRACES_SAMPLER_ARG`. */
const SAMPLERS: Readonly<Record<string, (argument: number) => TraceSampling>> = {
  always_on: () => ({ share: 1, isParentBased: false }),
  always_off: () => ({ share: 0, isParentBased: false }),
  traceidratio: (share) => ({ share, isParentBased: false }),
  parentbased_always_on: () => ({ share: 1, isParentBased: true }),
  parentbased_always_off: () => ({ share: 0, isParentBased: true }),
  parentbased_traceidratio: (share) => ({ share, isParentBased: true }),
};

function samplingOf(variables: Variables, warnings: string[]): TraceSampling {
  const defaults = { share: 1, isParentBased: true };
  const name = textOf(variables, "OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  const sampler = Object.hasOwn(SAMPLERS, name) ? SAMPLERS[name] : undefined;
  const argument = Number(textOf(variables, "OTEL_TRACES_SAMPLER_ARG") ?? 1);
  if (sampler !== undefined && argument >= 0 && argument <= 1) return sampler(argument);
  const why = sampler === undefined ? "OTEL_TRACES_SAMPLER" : "OTEL_TRACES_SAMPLER_ARG";
  warnings.push(`Ignored ${why}: PML does not support its value`);
  return defaults;
}
