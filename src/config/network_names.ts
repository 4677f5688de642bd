/**
 * The variables that tell programs how to reach the network, such as proxies, or containers.
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
