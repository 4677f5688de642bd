/**
 * The guards of the way to the network: the proxy and the certificates of the person.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const PROXY = "src/remote/proxy_test.ts";
const THROUGH = "tests/network_test.ts";
const CHECKS = "GuardedFetch checks before the proxy what it can: addresses, TLS, and local names";
const EXCEPT = "GuardedFetch asks no proxy for this machine, nor for what is excepted";
const WRONG =
  "GuardedFetch takes no other certificate from behind a proxy, and sends nothing to it";
const OWN = "GuardedFetch shows a certificate through a proxy, and says so where one is wanted";
const FILES = "A workspace's file names no proxy and no certificates";
const MORE =
  "GuardedFetch says what is so where a proxy answers more than an answer, and leaves nothing open";

/** The guards. */
export const NETWORK: readonly Mutant[] = [
  {
    name: "proxy-addresses",
    guard: "A private address that nobody named is not asked of a proxy",
    file: "guarded_fetch.ts",
    find: "isLiteral(url.hostname) ? await isPrivate(host) : proxy && LOCAL_NAME.test(host)",
    put: "!proxy && isLiteral(url.hostname) && await isPrivate(host)",
    test: PROXY,
    filter: CHECKS,
  },
  {
    name: "proxy-local-names",
    guard: "A name of a private network that nobody named is not asked of a proxy",
    file: "guarded_fetch.ts",
    find: "proxy && LOCAL_NAME.test(host)",
    put: "false",
    test: PROXY,
    filter: CHECKS,
  },
  {
    name: "proxy-loopback",
    guard: "What lies on this machine is not asked of a proxy",
    file: "proxy.ts",
    find: "if (isLoopback(host)) return true;",
    put: "",
    test: PROXY,
    filter: EXCEPT,
  },
  {
    name: "proxy-tls",
    guard: "Behind a proxy, the certificate of the server is checked",
    file: "proxy.ts",
    find: "connect({ ...options, socket },",
    put: "connect({ ...options, socket, rejectUnauthorized: false },",
    test: PROXY,
    filter: WRONG,
  },
  {
    name: "proxy-answer",
    guard: "A proxy that says more than an answer is not used",
    file: "proxy.ts",
    find: "statusCode === 200 && head.length === 0",
    put: "statusCode === 200",
    test: PROXY,
    filter: MORE,
  },
  {
    name: "proxy-given-up",
    guard: "A request that is given up leaves no connection to a proxy open",
    file: "proxy.ts",
    find: "onAbort(over, () => open.destroy())",
    put: "onAbort(over, () => {})",
    test: PROXY,
    filter: "GuardedFetch gives up a proxy that is silent, in time or when it is aborted",
  },
  {
    name: "proxy-password",
    guard: "The password of a proxy is removed from every text",
    file: "network.ts",
    find: "redactor.register(decodeURIComponent(url.password));",
    put: "",
    test: "src/app/network_test.ts",
    filter: "proxyOf() fills in variables as they are, and registers the password",
  },
  {
    name: "certificates-origin",
    guard: "The certificate for a server goes to no other origin",
    file: "_agents.ts",
    find: "isSecure && certificates?.origin === url.origin",
    put: "isSecure && certificates",
    test: PROXY,
    filter: OWN,
  },
  {
    name: "certificates-pool",
    guard: "A connection with a certificate serves no other server's requests",
    file: "_agents.ts",
    find: "proxy?.url, stamp]",
    put: "proxy?.url]",
    test: PROXY,
    filter: OWN,
  },
  {
    name: "certificates-workspace",
    guard: "A workspace's file names no certificates",
    file: "_schema.ts",
    find: "leaf<string>(PERSONAL, () => false)",
    put: "path",
    test: THROUGH,
    filter: FILES,
  },
  {
    name: "certificates-key",
    guard: "An error tells nothing of a key",
    file: "certificates.ts",
    find: "throw refused(path, why, HINT);",
    put: "throw refused(path, why + key, HINT);",
    test: "src/remote/certificates_test.ts",
    filter: "readCertificates() names the file that cannot be used, and nothing of it",
  },
];
