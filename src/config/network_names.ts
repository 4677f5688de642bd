/**
 * The variables that tell programs how to reach the network, such as proxies, or containers, and
 * where traces are sent.
 *
 * @module
 */

const PROXIES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

/** The variables for certificates and proxies. Programs look for proxies in both cases. */
export const NETWORK_NAMES: readonly string[] = [
  ...PROXIES,
  ...PROXIES.map((name) => name.toLowerCase()),
  ...["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA"],
  ...["NODE_USE_ENV_PROXY", "DENO_CERT", "DENO_TLS_CA_STORE", "REQUESTS_CA_BUNDLE"],
  ...["CURL_CA_BUNDLE", "GIT_SSL_CAINFO"],
];

/** The variables by which docker and podman find their daemon and its settings. */
export const CONTAINER_NAMES: readonly string[] = [
  ...["DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "XDG_RUNTIME_DIR"],
];

/** The first part of the names for an exporter. */
export const OTLP = "OTEL_EXPORTER_OTLP_";
const OPTIONS = [
  ...["ENDPOINT", "HEADERS", "PROTOCOL", "TIMEOUT", "COMPRESSION", "CERTIFICATE"],
  ...["CLIENT_KEY", "CLIENT_CERTIFICATE"],
];

/** The variables that decide about traces. The author of a workspace may not set them. */
export const TRACE_NAMES: readonly string[] = [
  ...OPTIONS.map((name) => `${OTLP}${name}`),
  ...OPTIONS.map((name) => `${OTLP}TRACES_${name}`),
  ...["OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_TRACES_SAMPLER"],
  ...["OTEL_TRACES_SAMPLER_ARG", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"],
  ...["OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"],
];

/** The variables that name the endpoint. Without one of them, no traces are recorded. */
const ENDPOINTS = [`${OTLP}ENDPOINT`, `${OTLP}TRACES_ENDPOINT`];

/** Returns whether an endpoint for traces is set. */
export function hasTraceEndpoint(
  variables: { get(name: string): string | undefined },
): boolean {
  return ENDPOINTS.some((name) => (variables.get(name) ?? "").trim() !== "");
}
