/**
 * Shows the lines that a user copies to use a hub and its entries.
 *
 * @module
 */

import type { PageOptions } from "./_frame.ts";
import { type Html, html } from "./_html.ts";
import type { ShownTool } from "./_manifest.ts";

/** Matches names without a character that is special in a shell. */
const PLAIN = /^[A-Za-z0-9_][\w.-]{0,127}$/;

/** Shows the lines of `.pml.json` that name this hub. */
export function registriesLine({ url, publicKey, needsKey = false }: PageOptions): Html {
  const entry = publicKey === undefined ? url : { url, public_key: publicKey };
  const cloud = needsKey ? `, "cloud": ${JSON.stringify({ url })}` : "";
  const line = `"registries": [${JSON.stringify(entry)}]${cloud}`;
  return html`<pre class="use"><code>${line}</code></pre>`;
}

/**
 * Shows the line that calls the first tool with a plain name, or that lists the tools if there is
 * none. Users copy the line to a shell, so it never contains a name with special characters.
 */
export function callLine(fqdn: string, tools: readonly ShownTool[]): Html {
  const [server = "", action] = fqdn.split(":");
  const names = action === undefined ? tools.map(({ name }) => name) : [action];
  const tool = names.find((name) => PLAIN.test(name));
  if (!PLAIN.test(server)) return html``;
  const line = tool === undefined ? `pml tools ${server}` : `pml call ${server}:${tool}`;
  return html`<pre class="use"><code>${line}</code></pre>`;
}
