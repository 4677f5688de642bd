/**
 * What a confined child still reads of the system.
 *
 * @module
 */

/** Libraries, and where they are looked up. */
export const LIBRARIES = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"];

/** Time zones. */
export const CLOCK = ["/etc/localtime", "/usr/share/zoneinfo"];

/** What names are resolved with, and whose certificates are believed. */
export const NETWORK = [
  ...["nsswitch.conf", "hosts", "host.conf", "resolv.conf", "gai.conf", "services", "protocols"],
  ...["ssl", "pki", "ca-certificates"],
].map((name) => `/etc/${name}`).concat("/usr/share/ca-certificates");

/** Where those listen that resolve names for all. */
export const RESOLVERS = ["/run/systemd/resolve", "/run/nscd"];
