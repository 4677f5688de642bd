/**
 * Shows the tools of an entry and their arguments.
 *
 * @module
 */

import { type JsonObject, objectOf, textOf } from "@casys/pml/registry";
import { jsonBlock } from "./_code.ts";
import { untrustedText } from "./_frame.ts";
import { type Html, html } from "./_html.ts";
import type { ShownTool } from "./_manifest.ts";

/**
 * The maximum numbers of tools and of arguments (`members`), and the maximum numbers of characters of
 * one text, of one schema, and of all schemas.
 */
const MAX = { tools: 200, members: 50, text: 1_000, schema: 20_000, all: 400_000 };

/** Shows the tools of an entry. */
export function toolSection(tools: readonly ShownTool[]): Html {
  if (tools.length === 0) {
    return html`
      <section aria-labelledby="tools">
        <h2 id="tools">Tools</h2>
        <p>Its publisher lists no tools. PML reads them when the server runs.</p>
      </section>
    `;
  }
  const maxSchema = Math.min(MAX.schema, Math.floor(MAX.all / Math.min(tools.length, MAX.tools)));
  const items = tools.slice(0, MAX.tools).map((tool) => toolHtml(tool, maxSchema));
  const rest = tools.length - items.length;
  return html`<section aria-labelledby="tools">
<h2 id="tools">Tools <small>${tools.length}</small></h2>${items}
${rest > 0 ? html`<p>and ${rest} more, which are in the download.</p>` : html``}</section>`;
}

function toolHtml({ name, definition }: ShownTool, maxSchema: number): Html {
  const title = html`<h3><code>${name.slice(0, 200)}</code></h3>`;
  if (definition === undefined) return html`<div class="tool">${title}</div>`;
  const { inputSchema, outputSchema, annotations } = definition;
  const description = textOf(definition.description);
  return html`
    <div class="tool">${title}
    ${description === "" ? html`` : html`<p>${untrustedText(description, MAX.text)}</p>`}
    ${argumentList(objectOf(inputSchema))}
    ${schemaDetails("Schema of its arguments", { value: inputSchema, max: maxSchema })}
    ${schemaDetails("Schema of its result", { value: outputSchema, max: maxSchema })}
    ${schemaDetails("Annotations", { value: annotations, max: maxSchema })}</div>
  `;
}

function argumentList({ properties, required }: JsonObject): Html {
  const requiredNames = Array.isArray(required) ? required : [];
  const entries = Object.entries(objectOf(properties));
  if (entries.length === 0) return html``;
  const rows = entries.slice(0, MAX.members).map(([name, value]) => {
    const { type, description } = objectOf(value);
    const facts = [
      ...type === undefined
        ? []
        : [Array.isArray(type) ? type.map(textOf).join(" or ") : textOf(type)],
      ...requiredNames.includes(name) ? ["required"] : [],
    ].join(", ");
    return html`
      <div>
        <dt><code>${name.slice(0, 100)}</code> <small>${facts.slice(0, 200)}</small></dt>
        <dd>${untrustedText(textOf(description), MAX.text)}</dd>
      </div>
    `;
  });
  const rest = entries.length - rows.length;
  return html`<dl class="members">${rows}</dl>${
    rest > 0 ? html`<p>and ${rest} more arguments</p>` : html``
  }`;
}

function schemaDetails(
  title: string,
  { value, max }: { readonly value: unknown; readonly max: number },
): Html {
  return value === undefined
    ? html``
    : html`<details><summary>${title}</summary>${jsonBlock(value, max)}</details>`;
}
