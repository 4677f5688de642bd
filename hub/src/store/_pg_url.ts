/**
 * Parses the URL of a PostgreSQL server.
 *
 * @module
 */

import { PmlError, quoted } from "@casys/pml/registry";

/** The address of a database, and the user that signs in. */
export interface PgPlace {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password: string;
  readonly ssl: "verify-full" | "require" | false;
  /** The URL without its password. */
  readonly label: string;
}

const PORT = 5432;
const LOOPBACK = /^(localhost|127(\.\d+){3}|::1)$/;
const MODES = ["disable", "require", "verify-full"];
const HINT =
  "Write postgres://USER:PASSWORD@HOST:PORT/DATABASE; add ?sslmode=disable, require or " +
  "verify-full to choose TLS, or use @localhost and ?host=FOLDER for a socket";

/** Parses a URL. Throws `CONFIG_INVALID`; the message omits the URL, which contains a password. */
export function parsePgUrl(text: string): PgPlace {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw urlError("it is not a URL");
  if (!/^postgres(ql)?:$/.test(url.protocol)) throw urlError("it does not begin with postgres://");
  const { host: folder, sslmode, ...unknownParameters } = Object.fromEntries(url.searchParams);
  const [unknown] = Object.keys(unknownParameters);
  if (unknown !== undefined) {
    throw urlError(`it has the parameter ${quoted(unknown)}, which is not supported`);
  }
  const host = folder ?? url.hostname.replace(/^\[(.*)\]$/, "$1");
  const database = decode(url.pathname.slice(1));
  const user = decode(url.username);
  if (host === "" || database === "" || user === "") {
    throw urlError("it needs a host, a user and a database");
  }
  if (folder !== undefined && !folder.startsWith("/")) {
    throw urlError("its socket is not the path of a folder");
  }
  const port = Number(url.port || PORT);
  const password = decode(url.password);
  const ssl = sslOf(sslmode, host);
  const label = `${user}@${host}:${port}/${database}`;
  return { host, port, database, user, password, ssl, label };
}

/** Returns the mode of TLS. By default, a remote server needs TLS with a valid certificate. */
function sslOf(mode: string | undefined, host: string): PgPlace["ssl"] {
  if (mode === undefined) {
    return host.startsWith("/") || LOOPBACK.test(host) ? false : "verify-full";
  }
  if (!MODES.includes(mode)) throw urlError(`its sslmode is none of ${MODES.join(", ")}`);
  return mode === "disable" ? false : mode === "require" ? "require" : "verify-full";
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw urlError("it contains an invalid % sequence");
  }
}

function urlError(why: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot use DATABASE_URL: ${why}`, { hint: HINT });
}
