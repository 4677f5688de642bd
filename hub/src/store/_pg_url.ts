/**
 * Reads the URL of a PostgreSQL server.
 *
 * @module
 */

import { PmlError, quoted } from "@casys/pml/registry";

/** Where a database is, and as whom to sign in. */
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
const HINT = "Write postgres://USER:PASSWORD@HOST:PORT/DATABASE, and maybe ?sslmode=disable, " +
  "require or verify-full, or @localhost and ?host=FOLDER for a socket";

/** Parses a URL. Throws `CONFIG_INVALID` without the URL, which contains a password. */
export function pgPlaceOf(text: string): PgPlace {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw unfit("it is no URL");
  if (!/^postgres(ql)?:$/.test(url.protocol)) throw unfit("it does not begin with postgres://");
  const { host: folder, sslmode, ...others } = Object.fromEntries(url.searchParams);
  const [odd] = Object.keys(others);
  if (odd !== undefined) throw unfit(`it has the parameter ${quoted(odd)}, which is not known`);
  const host = folder ?? url.hostname.replace(/^\[(.*)\]$/, "$1");
  const database = decoded(url.pathname.slice(1));
  const user = decoded(url.username);
  if (host === "" || database === "" || user === "") {
    throw unfit("it needs a host, a user and a database");
  }
  if (folder !== undefined && !folder.startsWith("/")) throw unfit("its socket is no folder");
  const port = Number(url.port || PORT);
  const password = decoded(url.password);
  const ssl = sslOf(sslmode, host);
  const label = `${user}@${host}:${port}/${database}`;
  return { host, port, database, user, password, ssl, label };
}

/** Returns how to use TLS. By default a remote server requires TLS with a valid certificate. */
function sslOf(mode: string | undefined, host: string): PgPlace["ssl"] {
  if (mode === undefined) {
    return host.startsWith("/") || LOOPBACK.test(host) ? false : "verify-full";
  }
  if (!MODES.includes(mode)) throw unfit(`its sslmode is none of ${MODES.join(", ")}`);
  return mode === "disable" ? false : mode === "require" ? "require" : "verify-full";
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw unfit("it contains an invalid % sequence");
  }
}

function unfit(why: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot use DATABASE_URL: ${why}`, { hint: HINT });
}
