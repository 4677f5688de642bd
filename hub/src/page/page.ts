/**
 * The page of a hub for people: HTML without scripts, in which nothing of a publisher is live.
 *
 * @module
 */

import {
  conditional,
  fqdnOf,
  type RegistryRequest,
  type RegistryResponse,
} from "@casys/pml/registry";
import { diffPage } from "./_diff.ts";
import { entryPage } from "./_entry.ts";
import { answerOf, icon, type PageOptions, problemPage, type Sheet } from "./_frame.ts";
import { html } from "./_html.ts";
import { home, searchSheet } from "./_list.ts";

export type { PageOptions } from "./_frame.ts";

const ENTRY = /^\/entry\/([^/]*)(\/diff)?$/;
const ICON = "/favicon.svg";

/** Answers a request of a browser. Returns undefined if it asks for no page. */
export async function page(
  request: RegistryRequest,
  options: PageOptions,
): Promise<RegistryResponse | undefined> {
  const [path = "", query = ""] = request.target.split(/\?(.*)/s);
  if (path === ICON) return conditional(icon(), request);
  const isEntry = path.startsWith("/entry/");
  if (!isEntry && path !== "/" && path !== "/search") return undefined;
  // A path without a page's beginning may name an entry, for clients that leave `/mcp` out.
  if (!wantsPage(request.accept ?? "", { isEntry })) return undefined;
  const sheet = await sheetOf(path, { query: new URLSearchParams(query), options });
  return conditional(answerOf(sheet), request);
}

/** Returns the path of the data of a page, for programs. */
export function programPath(target: string): string {
  return target.replace(/^\/entry\/(?=[^/]+$)/, "/mcp/");
}

async function sheetOf(
  path: string,
  { query, options }: { readonly query: URLSearchParams; readonly options: PageOptions },
): Promise<Sheet> {
  if (path === "/") return await home(options);
  if (path === "/search") return await searchSheet(query, options);
  const [, part = "", diff] = ENTRY.exec(path) ?? [];
  const name = decoded(part);
  if (name === undefined || fqdnOf(name) === undefined) return noName(name ?? part);
  const [fqdn = "", version] = name.split("@");
  if (diff !== undefined) {
    return (await options.store.entry(fqdn, undefined)) === undefined
      ? missing(fqdn)
      : await diffPage(fqdn, { query, store: options.store });
  }
  const entry = await options.store.entry(fqdn, version);
  return entry === undefined ? missing(name) : await entryPage(entry, options);
}

function noName(name: string): Sheet {
  return problemPage(400, {
    title: "This is no name of an entry",
    why: html`<q>${name.slice(0, 200)}</q> cannot be the name of an entry.`,
    hint: html`A name is like <code>weather</code> or <code>fs:read_json</code>, with a version
<code>weather@1.2.0</code>. Search for it above.`,
  });
}

function missing(name: string): Sheet {
  return problemPage(404, {
    title: "There is no such entry",
    why: html`This hub has no <q>${name.slice(0, 200)}</q>.`,
    hint: html`Check the name and the version, or search for it above.`,
  });
}

/** Returns whether HTML is wanted, and JSON not more. */
function wantsPage(accept: string, { isEntry }: { readonly isEntry: boolean }): boolean {
  const weight = (ranges: readonly string[]) =>
    Math.max(
      0,
      ...accept.toLowerCase().split(",").flatMap((part) => {
        const [range = "", ...parameters] = part.split(";").map((one) => one.trim());
        const q = parameters.find((one) => one.startsWith("q="))?.slice(2) ?? "1";
        return ranges.includes(range) ? [Number(q) || 0] : [];
      }),
    );
  const page = weight(["text/html", "text/*"]);
  const json = weight(["application/json", "application/typescript"]);
  return page > 0 ? page >= json : isEntry && json === 0;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined; // then it is no name
  }
}
