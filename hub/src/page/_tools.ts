/**
 * Shows the tools of an entry and their arguments.
 *
 * @module
 */

import { type JsonObject, objectOf, textOf } from "@casys/pml/registry";
import { jsonBlock } from "./_code.ts";
import { external } from "./_frame.ts";
import { type Html, html } from "./_html.ts";
import type { ShownTool } from "./_manifest.ts";

/** How many tools and arguments are shown, and how many characters of each text and schema. */
const MOST = { tools: 200, members: 50, text: 1_000, schema: 20_000, all: 400_000 };

/** Shows the tools of an entry. */
export function toolSection(tools: readonly ShownTool[]): Html {
  if (tools.length === 0) {
    return html`
      <section aria-labelledby="tools">
        <h2 id="tools">Tools</h2>
        <p>Its publisher names none. They are known once the server runs.</p>
      </section>
    `;
  }
  const room = Math.min(MOST.schema, Math.floor(MOST.all / Math.min(tools.length, MOST.tools)));
  const items = tools.slice(0, MOST.tools).map((tool) => toolOf(tool, room));
  const rest = tools.length - items.length;
  return html`<section aria-labelledby="tools">
<h2 id="tools">Tools <small>${tools.length}</small></h2>${items}
${rest > 0 ? html`<p>and ${rest} more, which the download has.</p>` : html``}</section>`;
}

function toolOf({ name, definition }: ShownTool, room: number): Html {
  const title = html`<h3><code>${name.slice(0, 200)}</code></h3>`;
  if (definition === undefined) return html`<div class="tool">${title}</div>`;
  const { inputSchema, outputSchema, annotations } = definition;
  const description = textOf(definition.description);
  return html`
    <div class="tool">${title}
    ${description === "" ? html`` : html`<p>${external(description, MOST.text)}</p>`}
    ${members(objectOf(inputSchema))}
    ${schema("Schema of its arguments", { value: inputSchema, room })}
    ${schema("Schema of its result", { value: outputSchema, room })}
    ${schema("Annotations", { value: annotations, room })}</div>
  `;
}

function members({ properties, required }: JsonObject): Html {
  const needed = Array.isArray(required) ? required : [];
  const all = Object.entries(objectOf(properties));
  if (all.length === 0) return html``;
  const rows = all.slice(0, MOST.members).map(([name, value]) => {
    const { type, description } = objectOf(value);
    const about = [
      ...type === undefined
        ? []
        : [Array.isArray(type) ? type.map(textOf).join(" or ") : textOf(type)],
      ...needed.includes(name) ? ["required"] : [],
    ].join(", ");
    return html`
      <div>
        <dt><code>${name.slice(0, 100)}</code> <small>${about.slice(0, 200)}</small></dt>
        <dd>${external(textOf(description), MOST.text)}</dd>
      </div>
    `;
  });
  const rest = all.length - rows.length;
  return html`<dl class="members">${rows}</dl>${
    rest > 0 ? html`<p>and ${rest} more arguments</p>` : html``
  }`;
}

function schema(
  title: string,
  { value, room }: { readonly value: unknown; readonly room: number },
): Html {
  return value === undefined
    ? html``
    : html`<details><summary>${title}</summary>${jsonBlock(value, room)}</details>`;
}
