/** Tests of the decision whether a tool only reads, with definitions of real servers. */

import assert from "node:assert/strict";
import type { JsonObject } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { readingOf, READS_FILES } from "./tool_reading.ts";

/** Definitions of popular servers without their texts; each with its source and licence. */
const SERVERS: Readonly<Record<string, { readonly tools: readonly ToolDefinition[] }>> = JSON.parse(
  await Deno.readTextFile(new URL("../../tests/fixtures/server_tools.json", import.meta.url)),
);

function reading(properties: JsonObject, more: JsonObject = {}) {
  const inputSchema = { type: "object", properties, ...more };
  return readingOf({ name: "look", inputSchema, annotations: { readOnlyHint: true } });
}

/** Returns the effect that a note names. */
function effectIn(note: string): string | undefined {
  return / may be (.*)$/.exec(note)?.[1];
}

function toolsOf(server: string): readonly ToolDefinition[] {
  return SERVERS[server]?.tools ?? assert.fail(server);
}

/** Returns the names of the tools of a server that read, without and with the mark. */
function readersOf(server: string) {
  const all = toolsOf(server).map((tool) => ({ name: tool.name, ...readingOf(tool) }));
  const names = (note?: string) =>
    all.filter((one) => one.reads && one.note === note).map(({ name }) => name).join(" ");
  return { plain: names(), files: names(READS_FILES) };
}

Deno.test("tools of popular servers read if no argument can have another effect", () => {
  assert.deepEqual(readersOf("filesystem"), {
    plain: "list_allowed_directories",
    files: "read_file read_text_file read_media_file read_multiple_files list_directory " +
      "list_directory_with_sizes directory_tree search_files get_file_info",
  });
  assert.deepEqual(readersOf("memory"), { plain: "read_graph search_nodes open_nodes", files: "" });
  assert.deepEqual(readersOf("git"), {
    plain: "",
    files: "git_status git_diff_unstaged git_diff_staged git_diff git_log git_show git_branch",
  });
  assert.deepEqual(readersOf("playwright"), { plain: "browser_wait_for", files: "" });
  assert.deepEqual(readersOf("firecrawl"), {
    plain: "firecrawl_check_crawl_status firecrawl_agent_status firecrawl_monitor_list " +
      "firecrawl_monitor_get firecrawl_monitor_checks firecrawl_monitor_check " +
      "firecrawl_research_search_papers firecrawl_research_inspect_paper " +
      "firecrawl_research_related_papers firecrawl_research_read_paper " +
      "firecrawl_research_search_github",
    files: "firecrawl_parse",
  });
  assert.deepEqual(readersOf("context7"), { plain: "resolve-library-id query-docs", files: "" });
  assert.equal(readersOf("notion").plain.split(" ").length, 12);
  const github = readersOf("github");
  assert.equal(github.files, "get_file_contents list_commits");
  assert.equal(github.plain.split(" ").length, 24);
});

Deno.test("a tool that its server calls read-only is left out for the argument that its note names", () => {
  const omitted = ["playwright", "firecrawl"].flatMap(toolsOf)
    .filter(({ annotations }) => annotations?.readOnlyHint === true)
    .map((tool) => [tool.name, readingOf(tool)] as const)
    .filter(([, { reads }]) => !reads);
  assert.deepEqual(
    omitted.map(([name, { note = "" }]) => `${name} ${/"(.*)" may/.exec(note)?.[1]}`),
    [
      "browser_console_messages filename",
      "browser_find filename",
      "browser_network_requests filename",
      "browser_network_request filename",
      "browser_take_screenshot filename",
      "browser_snapshot filename",
      "firecrawl_map url",
      "firecrawl_search includeDomains",
      "firecrawl_extract urls",
    ],
  );
});

Deno.test("names of addresses, hosts, code, SQL, commands, headers and output files are found in any spelling", () => {
  const kinds = {
    "an address": "url uri baseURL imageURLs target_url callback-url webhook href email_address " +
      "isUrl bcc redirect_uri connection_string",
    "a host": "host hostname dbHost allowed_domains ip ip_address port proxy",
    code: "code script javascript jsCode source_code expression function",
    SQL: "sql sqlQuery jql graphql cypher statement",
    "a command": "command cmd args argv arguments shell_command",
    headers: "headers requestHeaders cookies userAgent",
    "an output file": "filename fileName output outputPath out_dir destination dest savePath " +
      "save_to downloadsDir export_file overwrite savepath saveto downloadpath exportfile",
  };
  for (const [what, names] of Object.entries(kinds)) {
    for (const name of names.split(" ")) {
      const { reads, note = "" } = reading({ [name]: { type: "string" } });
      const expected = name === "ip_address" ? "an address" : what;
      assert.deepEqual([reads, effectIn(note), note.includes(name)], [false, expected, true]);
    }
  }
});

Deno.test("arguments that only choose, count or name something do not leave a tool out", () => {
  const names = "query id page country_code currencyCode url_count hostId output_format limit to " +
    "functionName max_output_tokens hourly transcript description owner repo from";
  for (const name of names.split(" ")) {
    assert.deepEqual(reading({ [name]: { type: "string" } }), { reads: true }, name);
  }
  assert.deepEqual(reading({ output: { enum: ["json", "yaml"] } }), { reads: true });
  assert.deepEqual(reading({ includeHeaders: { type: "boolean" } }), { reads: true });
  assert.deepEqual(reading({ remote: { type: "boolean" } }), { reads: true });
  assert.equal(reading({ remote: { type: "string" } }).reads, false);
  assert.equal(reading({ overwrite: { type: "boolean" } }).reads, false);
  assert.equal(reading({ includeHeaders: { type: "object" } }).reads, false);
});

Deno.test("a path is a file to read unless its description mentions writing", () => {
  for (const name of ["path", "paths", "filePath", "csv_file_path", "directory", "repo_path"]) {
    assert.deepEqual(reading({ [name]: { type: "string" } }), { reads: true, note: READS_FILES });
  }
  const written = {
    type: "string",
    description: "Saves the result there in place of returning it",
  };
  const { reads, note = "" } = reading({ path: written });
  assert.deepEqual([reads, effectIn(note)], [false, "an output file"]);
});

Deno.test("a query is SQL if its description or the name of the tool mentions a query language", () => {
  const described = { type: "string", description: "The PostgreSQL text to run" };
  assert.equal(effectIn(reading({ query: described }).note ?? ""), "SQL");
  const cypher = readingOf({
    name: "read-cypher",
    inputSchema: { type: "object", properties: { query: { type: "string" } } },
    annotations: { readOnlyHint: true },
  });
  assert.equal(cypher.reads, false);
});

Deno.test("arguments are found at any depth of a schema, and behind references", () => {
  const deep = { url: { type: "string" } };
  const inside: readonly JsonObject[] = [
    { a: { type: "object", properties: { b: { type: "array", items: { properties: deep } } } } },
    { a: { anyOf: [{ type: "null" }, { properties: deep }] } },
    { a: { additionalProperties: { properties: deep } } },
    { a: { type: "string", format: "uri" } },
    { a: { anyOf: [{ type: "string", format: "uri" }, { type: "null" }] } },
    { a: { type: "array", items: { type: "string", format: "uri" } } },
    { path: { anyOf: [{ type: "string", description: "Saves it here" }, { type: "null" }] } },
    { properties: { type: "object", properties: deep } },
    { $ref: { type: "object", properties: deep } },
  ];
  for (const properties of inside) {
    assert.equal(reading(properties).reads, false, JSON.stringify(properties));
  }
  const $defs = { a: { properties: deep }, "b/c": { $ref: "#/$defs/a" } };
  assert.equal(reading({ x: { $ref: "#/$defs/b~1c" } }, { $defs }).reads, false);
  assert.deepEqual(reading({ x: { $ref: "#" } }, { $defs }), { reads: true });
  assert.equal(reading({}, { required: ["url"] }).reads, false);
  assert.equal(reading({}, { allOf: [{ properties: deep }] }).reads, false);
  let nested: JsonObject = deep;
  for (let level = 0; level < 20_000; level++) nested = { a: { properties: nested } };
  assert.equal(reading(nested).reads, false);
});

Deno.test("a schema that does not name all arguments leaves a tool out", () => {
  const unnamed = [
    reading({}, { patternProperties: { "^u": { type: "string" } } }),
    reading({ x: { $ref: "https://example.com/schema.json" } }),
    reading({ x: { $ref: "#/$defs/missing" } }),
    reading({ x: { $dynamicRef: "#meta" } }),
    // A Cyrillic letter looks like the Latin one.
    reading({ "\u0443rl": { type: "string" } }),
    reading({ [`a${"A".repeat(200_000)}`]: { type: "string" } }),
  ];
  for (const { reads } of unnamed) assert.equal(reads, false);
});

Deno.test("only a read-only hint that is true, without a destructive one, makes a tool read", () => {
  const inputSchema = { type: "object" };
  const of = (annotations?: JsonObject) => readingOf({ name: "x", inputSchema, ...annotations });
  assert.equal(of({ annotations: { readOnlyHint: true } }).reads, true);
  assert.equal(of({ annotations: { readOnlyHint: true, destructiveHint: false } }).reads, true);
  for (const readOnlyHint of [false, "true", 1, null]) {
    assert.equal(of({ annotations: { readOnlyHint } }).reads, false);
  }
  assert.equal(of({ annotations: { readOnlyHint: true, destructiveHint: true } }).reads, false);
  assert.equal(of().reads, false);
});

Deno.test("a tool that returns environment variables or secrets by its name or description is left out", () => {
  const of = (name: string, description = "") =>
    readingOf({
      ...{ name, description, inputSchema: { type: "object" } },
      annotations: { readOnlyHint: true },
    });
  const omitted: readonly (readonly [name: string, description: string, word: string])[] = [
    ["get-env", "", "env"],
    ["printEnv", "", "print_env"],
    ["list_secrets", "", "secrets"],
    ["getApiKey", "", "api_key"],
    ["read_credentials", "", "credentials"],
    ["get_token", "", "token"],
    ["info", "Returns all environment variables, helpful for debugging", "environment variables"],
    ["info", "Shows the user's passwords", "passwords"],
    ["info", "Gets an access token for the API", "token"],
    ["info", "Looks around.\nPrints each secret of the vault", "secret"],
  ];
  for (const [name, description, word] of omitted) {
    const { reads, note = "" } = of(name, description);
    assert.deepEqual([reads, note.includes(`"${word}"`)], [false, true], `${name} ${note}`);
  }
  const reading: readonly (readonly [name: string, description?: string])[] = [
    ["list_environments"],
    ["envelope_of"],
    ["count_tokens"],
    ["get_design_tokens"],
    ["token_usage"],
    ["search", "Returns at most 5000 tokens"],
    ["search", "Returns a list, and the next page token for more"],
    ["search", "Needs credentials of the user"],
  ];
  for (const [name, description] of reading) {
    assert.deepEqual(of(name, description), { reads: true });
  }
  const long = "return ".repeat(100_000);
  assert.deepEqual(of("search", long), { reads: true });
});
