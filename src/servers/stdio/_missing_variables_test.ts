import assert from "node:assert/strict";
import { missingVariables } from "./_missing_variables.ts";

Deno.test("missingVariables() returns the variables that an output calls missing and that are not set", () => {
  const table: readonly (readonly [output: string, names: readonly string[]])[] = [
    ["Error: TICKETS_TOKEN environment variable is required", ["TICKETS_TOKEN"]],
    ["Please set the API_KEY", ["API_KEY"]],
    ["KeyError: 'GITHUB_TOKEN'", ["GITHUB_TOKEN"]],
    ["Error: JIRA_URL and JIRA_TOKEN must be set", ["JIRA_URL", "JIRA_TOKEN"]],
    ["Missing environment variables:\n  - A_URL\n  - A_TOKEN\nat x (B_C)", ["A_URL", "A_TOKEN"]],
    ["Error: SET_ALREADY is not set", []],
    ["warning: LOG_LEVEL is not set, by default info\nError: boom", []],
    ["Error [ERR_MODULE_NOT_FOUND]: missing module\n  code: 'MODULE_NOT_FOUND' required", []],
    ["Error: cannot read A_FILE", []],
    ["", []],
  ];
  for (const [output, names] of table) {
    assert.deepEqual(missingVariables(output, { SET_ALREADY: "1" }), names, output);
  }
});

Deno.test("missingVariables() returns no variable that changes how programs run, and none of PML", () => {
  const output = "Error: NODE_OPTIONS, LD_PRELOAD, PML_API_KEY and MY_TOKEN are required";
  assert.deepEqual(missingVariables(output, {}), ["MY_TOKEN"]);
});
