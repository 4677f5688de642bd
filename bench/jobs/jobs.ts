/**
 * Five jobs that users give to a model, each done in three ways: with single calls, with a plan and
 * with code. All ways of a job must have the same result.
 *
 * @module
 */

/** Calls a tool and returns its text: one round trip of a client. */
export type CallTool = (tool: string, args: Readonly<Record<string, unknown>>) => Promise<string>;

/** A job over the files of a workspace. */
export interface Job {
  readonly name: string;
  readonly files: Readonly<Record<string, string>>;
  /** Does the job call by call, as a model that reads each result. Returns the answer. */
  readonly direct: (call: CallTool) => Promise<string>;
  /** Does the job with a plan. The model reads some outputs, and may need more calls. */
  readonly plan: {
    readonly tasks: readonly Readonly<Record<string, unknown>>[];
    /** The tasks whose outputs the model must read. */
    readonly reads: readonly string[];
    readonly finish: (outputs: Outputs, call: CallTool) => Promise<string> | string;
  };
  /** Does the job with code, which returns the answer. */
  readonly code: string;
  /** The file that the job writes, if any. Its text must be the same in all ways. */
  readonly written?: string;
}

/** The output of each task of a plan. */
export type Outputs = Readonly<Record<string, unknown>>;

const WORDS = "the gateway asks the person before a tool runs and writes down what it did".split(
  " ",
);

/** Returns lines of text that depend only on `seed`. */
function prose(seed: number, lines: number): string {
  return Array.from(
    { length: lines },
    (_, line) =>
      Array.from({ length: 9 }, (_, at) => WORDS[(seed * 7 + line * 3 + at * 5) % WORDS.length])
        .join(" "),
  ).join("\n");
}

const NAMES = Array.from({ length: 12 }, (_, at) => `part_${String(at + 1).padStart(2, "0")}`);
const SOURCES = Object.fromEntries(
  NAMES.map((name, at) => [
    `src/${name}.ts`,
    `${prose(at, 30)}\n${"// TODO: mend this\n".repeat(at % 4)}${prose(at + 50, 20)}\n`,
  ]),
);

const todos: Job = {
  name: "count the TODOs of twelve files",
  files: SOURCES,
  direct: async (call) => {
    const listed = await call("files:list_directory", { path: "src" });
    const counts: string[] = [];
    for (const [, name = ""] of listed.matchAll(/\[FILE\] (\S+)/g)) {
      const text = await call("files:read_text_file", { path: `src/${name}` });
      counts.push(`${name} ${text.split("TODO").length - 1}`);
    }
    return counts.sort().join("\n");
  },
  plan: {
    tasks: [{
      id: "read",
      tool: "files:read_text_file",
      for_each: NAMES.map((name) => `src/${name}.ts`),
      arguments: { path: { $ref: "$item#" } },
    }],
    reads: ["read"],
    finish: ({ read }) =>
      NAMES.map((name, at) =>
        `${name}.ts ${fileText((read as readonly unknown[])[at]).split("TODO").length - 1}`
      ).join("\n"),
  },
  code: `const { content } = await mcp.files.list_directory({ path: "src" });
const names = [...content.matchAll(/\\[FILE\\] (\\S+)/g)].map(([, name]) => name).sort();
return (await Promise.all(names.map(async (name) => {
  const { content } = await mcp.files.read_text_file({ path: "src/" + name });
  return name + " " + (content.split("TODO").length - 1);
}))).join("\\n");`,
};

const SERVICES = Object.fromEntries(
  Array.from({ length: 10 }, (_, at) => [
    `services/s${at}.json`,
    JSON.stringify({
      name: `s${at}`,
      host: `h${at}.internal`,
      port: 4000 + at,
      notes: prose(at, 6),
    }),
  ]),
);

const config: Job = {
  name: "gather ten configurations in one file",
  files: SERVICES,
  written: "hosts.txt",
  direct: async (call) => {
    const lines: string[] = [];
    for (const path of Object.keys(SERVICES)) {
      lines.push(hostLine(await call("files:read_text_file", { path })));
    }
    await call("files:write_file", { path: "hosts.txt", content: lines.join("\n") });
    return String(lines.length);
  },
  plan: {
    tasks: [{
      id: "read",
      tool: "files:read_text_file",
      for_each: Object.keys(SERVICES),
      arguments: { path: { $ref: "$item#" } },
    }],
    reads: ["read"],
    finish: async ({ read }, call) => {
      const lines = (read as readonly unknown[]).map((output) => hostLine(fileText(output)));
      await call("files:write_file", { path: "hosts.txt", content: lines.join("\n") });
      return String(lines.length);
    },
  },
  code: `const lines = await Promise.all([...Array(10).keys()].map(async (at) => {
  const { content } = await mcp.files.read_text_file({ path: "services/s" + at + ".json" });
  const { name, host, port } = JSON.parse(content);
  return name + " " + host + ":" + port;
}));
await mcp.files.write_file({ path: "hosts.txt", content: lines.join("\\n") });
return "" + lines.length;`,
};

function hostLine(text: string): string {
  const { name, host, port } = JSON.parse(text) as Readonly<Record<string, string>>;
  return `${name} ${host}:${port}`;
}

const PEOPLE = Array.from({ length: 8 }, (_, at) => ({
  name: `Person ${at}`,
  entityType: "person",
  observations: [`works on part ${at % 3}`, prose(at, 1)],
}));
const RELATIONS = PEOPLE.slice(1).map(({ name }) => ({
  from: name,
  to: "Person 0",
  relationType: "reports to",
}));

const graph: Job = {
  name: "put a file of people into the knowledge graph",
  files: {
    "people.json": JSON.stringify(PEOPLE),
    "relations.json": JSON.stringify(RELATIONS),
  },
  direct: async (call) => {
    const entities = JSON.parse(await call("files:read_text_file", { path: "people.json" }));
    await call("memory:create_entities", { entities });
    const relations = JSON.parse(await call("files:read_text_file", { path: "relations.json" }));
    await call("memory:create_relations", { relations });
    return entityNames(await call("memory:search_nodes", { query: "part 2" }));
  },
  plan: {
    tasks: [
      { id: "people", tool: "files:read_text_file", arguments: { path: "people.json" } },
      { id: "relations", tool: "files:read_text_file", arguments: { path: "relations.json" } },
    ],
    reads: ["people", "relations"],
    finish: async (outputs, call) => {
      await call("memory:create_entities", { entities: JSON.parse(fileText(outputs.people)) });
      await call("memory:create_relations", { relations: JSON.parse(fileText(outputs.relations)) });
      return entityNames(await call("memory:search_nodes", { query: "part 2" }));
    },
  },
  code:
    `const read = async (path) => JSON.parse((await mcp.files.read_text_file({ path })).content);
await mcp.memory.create_entities({ entities: await read("people.json") });
await mcp.memory.create_relations({ relations: await read("relations.json") });
const { entities } = await mcp.memory.search_nodes({ query: "part 2" });
return entities.map(({ name }) => name).sort().join(", ");`,
};

function entityNames(text: string): string {
  const { entities } = JSON.parse(text) as { readonly entities: readonly { name: string }[] };
  return entities.map(({ name }) => name).sort().join(", ");
}

const PAIRS = Array.from({ length: 6 }, (_, at) => `notes/n${at}.md`);

const copies: Job = {
  name: "copy six notes to a backup folder",
  files: {
    ...Object.fromEntries(PAIRS.map((path, at) => [path, prose(at + 3, 25)])),
    "backup/.keep": "",
  },
  written: "backup/n5.md",
  direct: async (call) => {
    for (const path of PAIRS) {
      const content = await call("files:read_text_file", { path });
      await call("files:write_file", { path: path.replace("notes", "backup"), content });
    }
    return `${PAIRS.length}`;
  },
  plan: {
    tasks: PAIRS.flatMap((path, at) => [
      { id: `r${at}`, tool: "files:read_text_file", arguments: { path } },
      {
        id: `w${at}`,
        tool: "files:write_file",
        arguments: { path: path.replace("notes", "backup"), content: { $ref: `r${at}#/content` } },
      },
    ]),
    reads: [],
    finish: () => `${PAIRS.length}`,
  },
  code: `const paths = [...Array(6).keys()].map((at) => "n" + at + ".md");
await Promise.all(paths.map(async (path) => {
  const { content } = await mcp.files.read_text_file({ path: "notes/" + path });
  await mcp.files.write_file({ path: "backup/" + path, content });
}));
return "" + paths.length;`,
};

const ORDERS = Array.from({ length: 10 }, (_, at) => ({
  id: at,
  customer: `c${at % 5}`,
  total: (at * 37) % 100,
  notes: prose(at, 3),
}));

const orders: Job = {
  name: "find the customers of the large orders",
  files: {
    "orders.json": JSON.stringify(ORDERS),
    ...Object.fromEntries(
      Array.from({ length: 5 }, (_, at) => [
        `customers/c${at}.json`,
        JSON.stringify({ name: `Customer ${at}`, mail: `c${at}@example.com`, about: prose(at, 8) }),
      ]),
    ),
  },
  direct: async (call) => {
    const all = JSON.parse(await call("files:read_text_file", { path: "orders.json" }));
    const mails: string[] = [];
    for (const customer of customersOfLargeOrders(all)) {
      const path = `customers/${customer}.json`;
      mails.push(JSON.parse(await call("files:read_text_file", { path })).mail);
    }
    return mails.join(", ");
  },
  plan: {
    tasks: [
      { id: "orders", tool: "files:read_text_file", arguments: { path: "orders.json" } },
      {
        id: "customers",
        tool: "files:read_text_file",
        for_each: [0, 1, 2, 3, 4].map((at) => `customers/c${at}.json`),
        arguments: { path: { $ref: "$item#" } },
      },
    ],
    reads: ["orders", "customers"],
    finish: (outputs) =>
      customersOfLargeOrders(JSON.parse(fileText(outputs.orders))).map((customer) => {
        const text = fileText((outputs.customers as readonly unknown[])[Number(customer.slice(1))]);
        return JSON.parse(text).mail;
      }).join(", "),
  },
  code:
    `const read = async (path) => JSON.parse((await mcp.files.read_text_file({ path })).content);
const big = (await read("orders.json")).filter(({ total }) => total > 70);
const customers = [...new Set(big.map(({ customer }) => customer))].sort();
return (await Promise.all(customers.map(async (customer) =>
  (await read("customers/" + customer + ".json")).mail))).join(", ");`,
};

function customersOfLargeOrders(
  all: readonly { readonly customer: string; readonly total: number }[],
): string[] {
  const customers = all.filter(({ total }) => total > 70).map(({ customer }) => customer);
  return [...new Set(customers)].sort();
}

/** Returns the text of a file from the output of the tool that reads it. */
function fileText(output: unknown): string {
  if (typeof output === "string") return output;
  const content = (output as { readonly content?: unknown } | undefined)?.content;
  return typeof content === "string" ? content : JSON.stringify(output);
}

/** All jobs. */
export const JOBS: readonly Job[] = [todos, config, graph, copies, orders];
