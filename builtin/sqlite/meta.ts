/**
 * Describes the module: its tools, their schemas and permissions.
 *
 * @module
 */

const TEXT = { type: "string" };
const FLAG = { type: "boolean" };
const COUNT = { type: "integer", minimum: 0 };
const LIST = { type: "array" };
const PATH = {
  ...TEXT,
  description: "A database file, relative to the workspace or absolute inside it",
};
const SQL = { ...TEXT, minLength: 1, description: "One statement; ? or :name for each value" };
const VALUE = {
  anyOf: [
    { type: ["string", "number", "boolean", "null"] },
    {
      type: "object",
      properties: { base64: TEXT },
      required: ["base64"],
      additionalProperties: false,
    },
  ],
};
const PARAMETERS = {
  anyOf: [{ ...LIST, items: VALUE, maxItems: 32_766 }, {
    type: "object",
    additionalProperties: VALUE,
  }],
  description: 'Values for ? in order, or for :name by name; {"base64": …} for bytes',
};
const READ: { readonly read: string[]; readonly write?: string[] } = { read: ["."] };

/** Describes the module and its tools. */
export const __meta__ = {
  name: "sqlite",
  version: "1.0.0",
  description: "Query and change SQLite databases in the workspace",
  permissions: READ,
  tools: {
    query: {
      description: "Run one SQL statement that reads, and give its rows by line as JSON arrays. " +
        "Integers beyond 2^53 come as text, bytes as base64",
      inputSchema: input(["path", "sql"], {
        path: PATH,
        sql: SQL,
        parameters: PARAMETERS,
        limit: { ...COUNT, minimum: 1, maximum: 1_000, default: 100 },
        offset: { ...COUNT, default: 0, description: "How many rows to skip" },
      }),
      outputSchema: output({
        columns: { ...LIST, items: TEXT },
        rows: { ...LIST, items: LIST },
        more: { ...FLAG, description: "Whether there are rows after these" },
      }),
      annotations: hints("Query a database", true),
      permissions: READ,
    },
    execute: {
      description: "Run one SQL statement that changes a database: its rows or its schema. Each " +
        "call is separate, so a transaction cannot span calls",
      inputSchema: input(["path", "sql"], {
        path: PATH,
        sql: SQL,
        parameters: PARAMETERS,
        create: { ...FLAG, default: false, description: "Make the file if it is missing" },
      }),
      outputSchema: output({
        changes: { ...COUNT, description: "How many rows it changed" },
        lastInsertRowid: { type: ["integer", "string"] },
      }),
      annotations: hints("Change a database", false),
      permissions: { ...READ, write: ["."] },
    },
    schema: {
      description: "Show the tables and views of a database: columns, keys, indexes, triggers, " +
        "and how many rows",
      inputSchema: input(["path"], {
        path: PATH,
        table: { ...TEXT, description: "Only this table or view" },
      }),
      outputSchema: output({
        tables: { ...LIST, items: { type: "object" } },
        more: { ...FLAG, description: "Whether there are tables that are not shown" },
      }),
      annotations: hints("Show a schema", true),
      permissions: READ,
    },
  },
};

function input(required: readonly string[], properties: object) {
  return { type: "object", properties, required, additionalProperties: false };
}

function output(properties: object) {
  return { type: "object", properties, required: Object.keys(properties) };
}

function hints(title: string, readOnlyHint: boolean) {
  const change = { destructiveHint: true, idempotentHint: false };
  return { title, readOnlyHint, ...(readOnlyHint ? {} : change), openWorldHint: false };
}
