/**
 * Serves one package on loopback as the JSR registry does, so that tests cover the whole
 * installation.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { HttpSink, type SinkRequest } from "./sinks.ts";

/** A package in its repository. */
export interface Package {
  readonly name: string;
  readonly version: string;
  readonly exports: Readonly<Record<string, string>>;
  /** Bare names and their packages, as in `deno.json`. */
  readonly imports: Readonly<Record<string, string>>;
  /** Path from the root to content. */
  readonly files: Readonly<Record<string, string>>;
}

/** Serves a package. Its URL, with a slash, is the value of `JSR_URL`. */
export function fakeJsr(served: Package): HttpSink {
  const { name, version, exports } = served;
  const files = new Map(
    Object.entries(served.files).map(([path, content]) => [
      `/${path}`,
      new TextEncoder().encode(path.endsWith(".ts") ? resolveBare(content, served) : content),
    ]),
  );
  const manifest = Object.fromEntries([...files].map(([path, bytes]) => {
    const checksum = `sha256-${createHash("sha256").update(bytes).digest("hex")}`;
    return [path, { size: bytes.length, checksum }];
  }));
  const [scope, bare] = name.slice(1).split("/");
  const created = { createdAt: "2020-01-01T00:00:00.000Z" };
  const versions = { [version]: created };
  return new HttpSink(({ path }: SinkRequest) => {
    if (path === `/${name}/meta.json`) {
      return Response.json({ scope, name: bare, latest: version, versions });
    }
    if (path === `/${name}/${version}_meta.json`) return Response.json({ manifest, exports });
    const bytes = files.get(path.replace(`/${name}/${version}`, ""));
    if (bytes === undefined) return new Response("not found", { status: 404 });
    const kind = path.endsWith(".ts") ? "text/typescript" : "application/octet-stream";
    return new Response(bytes, { headers: { "content-type": kind } });
  });
}

/** Replaces bare names by their packages, as the registry does when a package is published. */
function resolveBare(code: string, { imports }: Package): string {
  const specifier = /(\bfrom |^import |\bimport\(\s*)"([@\w][\w@./-]*)"/gm;
  return code.replace(specifier, (whole, before: string, name: string) => {
    const known = Object.keys(imports).find((key) => name === key || name.startsWith(`${key}/`));
    return known === undefined ? whole : `${before}"${imports[known]}${name.slice(known.length)}"`;
  });
}
