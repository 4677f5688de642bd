/**
 * The tables of settings: a new setting needs only a line of one. The tests add a made-up line to
 * the keys of `config.yaml`, and look for it in everything that is built from the table.
 *
 * @module
 */

import assert from "node:assert/strict";
import { settingKeys, settingWords } from "../src/cli/_setting_keys.ts";
import { number } from "../src/config/_values.ts";
import {
  policySchema,
  USER_CONFIG,
  userConfigSchema,
  workspaceSchema,
} from "../src/config/settings.ts";
import { isObject } from "../src/core/json.ts";
import {
  defaultsOf,
  type Issue,
  object,
  oneOf,
  type Schema,
  setting,
  validateValue,
} from "../src/core/value_schema.ts";
import { jsonSchemaOf } from "../tools/generate/json_schema.ts";
import { tableOf } from "../tools/generate/settings_page.ts";

Deno.test("a setting needs one line of the table", () => {
  const table = {
    ...USER_CONFIG,
    volume: setting(number(1, 9), "The volume of a made-up alarm.", 5),
    mood: setting(oneOf(["calm", "loud"]), "The mood of a made-up alarm.", "calm"),
  };
  const made = object({}, table);

  const problems: Pick<Issue, "wanted">[] = [];
  const read = (value: unknown) =>
    validateValue(value, { schema: made, problem: (_, { wanted }) => problems.push({ wanted }) });
  assert.deepEqual(read({ volume: 9 }), { volume: 9 });
  assert.equal(read({ volume: 10 }), undefined);
  assert.equal(read({ volum: 1 }), undefined, "a name that is nearly right");
  assert.deepEqual(problems, [{ wanted: "a whole number from 1 to 9" }, { wanted: '"volume"' }]);
  const usual: number = table.volume.default;
  assert.deepEqual([usual, defaultsOf(table).volume], [5, 5]);

  const { properties } = jsonSchemaOf(made.schema(), "config.yaml", "Settings.");
  assert.deepEqual(Object(properties).volume, {
    description: "The volume of a made-up alarm.",
    default: 5,
    type: "integer",
    minimum: 1,
    maximum: 9,
  });
  const row = "| `volume` | The volume of a made-up alarm. | a whole number from 1 to 9 | `5` |";
  assert.ok(tableOf(made.schema()).includes(row));
  assert.ok(settingWords(made.schema(), ["vol"]).includes("volume"));
  assert.deepEqual(settingWords(made.schema(), ["mood", ""]), ["calm", "loud"]);
});

Deno.test("config set completes keys and values, but no keys of other commands", () => {
  const keys = settingWords(userConfigSchema.schema(), [""]);
  assert.ok(keys.includes("limits.children") && keys.includes("gateway.hybrid.max_tokens"));
  assert.deepEqual(keys.filter((key) => /^(?:permissions|mcpServers)\b/.test(key)), []);
  assert.deepEqual(settingWords(workspaceSchema.schema(), ["gateway.prefix", ""]), [
    "true",
    "false",
  ]);
  assert.deepEqual(settingWords(workspaceSchema.schema(), ["intent", ""]), []);
  assert.deepEqual(settingKeys(object({}, {}).schema()), []);
});

Deno.test("every key has a description, and a default or words about its absence", () => {
  const wrong: string[] = [];
  const look = (schema: unknown, path: string) => {
    if (!isObject(schema)) return;
    const { required, oneOf, then, properties: own } = schema;
    // The forms of an entry repeat the same keys.
    const properties = oneOf === undefined && then === undefined ? own : {};
    for (const [key, one] of Object.entries<Schema>(Object(properties))) {
      const { description, default: usual, properties: isSection } = one;
      const isOptional = usual === undefined && isSection === undefined &&
        ![required].flat().includes(key) && one.not === undefined;
      const words = /by default|[Ww]ithout|ignored/i;
      if (typeof description !== "string" || !/\.$/.test(description)) wrong.push(`${path}.${key}`);
      else if (isOptional && !words.test(description)) wrong.push(`${path}.${key}: ${description}`);
    }
    for (const [keyword, part] of Object.entries(schema)) {
      if (keyword === "dependentSchemas") continue;
      if (Array.isArray(part)) part.forEach((one) => look(one, path));
      else look(part, path);
    }
    for (const [key, one] of Object.entries(Object(properties))) look(one, `${path}.${key}`);
  };
  for (const file of [workspaceSchema, userConfigSchema, policySchema]) look(file.schema(), "");
  assert.deepEqual([...new Set(wrong)], []);
});
