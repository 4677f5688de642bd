/**
 * The web pages of a hub: HTML without scripts. Texts of publishers are escaped, and never links.
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
import { icon, type PageContent, type PageOptions, problemPage, toResponse } from "./_frame.ts";
import { html } from "./_html.ts";
import { homePage, searchPage } from "./_list.ts";

export type { PageOptions } from "./_frame.ts";

const ENTRY = /^\/entry\/([^/]*)(\/diff)?$/;
const ICON = "/favicon.svg";

/** Answers a request of a browser. Returns undefined if the request is not for a page. */
export async function page(
  request: RegistryRequest,
  options: PageOptions,
): Promise<RegistryResponse | undefined> {
  const [path = "", query = ""] = request.target.split(/\?(.*)/s);
  if (path === ICON) return conditional(icon(), request);
  const isEntry = path.startsWith("/entry/");
  if (!isEntry && path !== "/" && path !== "/search") return undefined;
  // Clients may leave out `/mcp`, so any other path can be the name of an entry.
  if (!wantsPage(request.accept ?? "", { isEntry })) return undefined;
  const content = await contentOf(path, { query: new URLSearchParams(query), options });
  return conditional(toResponse(content), request);
}

/** Converts the path of an entry's page to the path of its data, for programs. */
export function programPath(target: string): string {
  return target.replace(/^\/entry\/(?=[^/]+$)/, "/mcp/");
}

async function contentOf(
  path: string,
  { query, options }: { readonly query: URLSearchParams; readonly options: PageOptions },
): Promise<PageContent> {
  if (path === "/") return await homePage(options);
  if (path === "/search") return await searchPage(query, options);
  const [, part = "", diff] = ENTRY.exec(path) ?? [];
  const name = decode(part);
  if (name === undefined || fqdnOf(name) === undefined) return invalidName(name ?? part);
  const [fqdn = "", version] = name.split("@");
  if (diff !== undefined) {
    return (await options.store.entry(fqdn, undefined)) === undefined
      ? missingEntry(fqdn)
      : await diffPage(fqdn, { query, store: options.store });
  }
  const entry = await options.store.entry(fqdn, version);
  return entry === undefined ? missingEntry(name) : await entryPage(entry, options);
}

function invalidName(name: string): PageContent {
  return problemPage(400, {
    title: "This is not the name of an entry",
    why: html`<q>${name.slice(0, 200)}</q> cannot be the name of an entry.`,
    hint:
      html`A name looks like <code>weather</code> or <code>fs:read_json</code>, or <code>weather@1.2.0</code>
with a version. Search for it above.`,
  });
}

function missingEntry(name: string): PageContent {
  return problemPage(404, {
    title: "There is no such entry",
    why: html`This hub has no <q>${name.slice(0, 200)}</q>.`,
    hint: html`Check the name and the version, or search for it above.`,
  });
}

/** Returns whether the client accepts HTML, and does not prefer JSON. */
function wantsPage(accept: string, { isEntry }: { readonly isEntry: boolean }): boolean {
  const weight = (ranges: readonly string[]) =>
    Math.max(
      0,
      ...accept.toLowerCase().split(",").flatMap((part) => {
        const [range = "", ...parameters] = part.split(";").map((text) => text.trim());
        const q = parameters.find((text) => text.startsWith("q="))?.slice(2) ?? "1";
        return ranges.includes(range) ? [Number(q) || 0] : [];
      }),
    );
  const page = weight(["text/html", "text/*"]);
  const json = weight(["application/json", "application/typescript"]);
  return page > 0 ? page >= json : isEntry && json === 0;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined; // not a valid name
  }
}
