/**
 * Says line by line what a workspace file brings, for the person who is asked to trust it.
 *
 * @module
 */

import { quoted, visible } from "../core/json.ts";
import { REDACTED } from "../core/key_kinds.ts";
import { plainCommand } from "../core/plain_command.ts";
import { withoutSecrets } from "./_secret_words.ts";
import { networkEnvironment } from "./child_environment.ts";
import type { Environment } from "./env.ts";
import type { WorkspaceFile } from "./file.ts";
import { gatewaySection } from "./gateway_section.ts";
import type { ServerDefinition } from "./servers.ts";

/** Whatever its length: what is cut off would be trusted unseen. */
const WHOLE = Infinity;
const GETS_KEY = " (is sent your PML_API_KEY with calls of cloud tools)";
/** What starts packages of npm, which can run under Deno's permissions. */
const OF_NPM = /(?:^|[\\/])(?:npx|bunx|pnpx)(?:\.cmd)?$/i;
/** A program whose packages PML installs in its place. */
const INSTALLER = /(?:^|[\\/])(?:npx|pnpx|bunx|uvx|npm|pnpm|yarn|bun|uv|pipx)(?:\.\w+)?$/i;
/** What else starts such a program somewhere in its line. */
const INSTALLS =
  /(?:^|[\s"'`\\/;&|(=])(?:npx|pnpx|bunx|uvx|(?:npm|pnpm|yarn|bun|pipx|uv tool) (?:exec|x|dlx|run))(?=[\s"']|$)/;

/** Gives a line for everything that counts only once the file is trusted, and what its servers find. */
export function shownLines(
  { permissions, servers, sections }: WorkspaceFile,
  environment: Pick<Environment, "get">,
): readonly string[] {
  const { gateway } = sections;
  const asWritten = { ...sections, gateway: gateway && gatewaySection(gateway) };
  const said = Object.entries(asWritten).filter(([, value]) => value !== undefined);
  return [
    ...servers.map((server) => `server "${server.name}": ${serverText(server)}`),
    ...servers.flatMap(settingLines),
    ...servers.some(({ kind }) => kind === "stdio") ? foundLines(environment) : [],
    ...(permissions?.allow ?? []).map((rule) => `runs unasked: ${rule.pattern.text}`),
    ...said.map(([name, value]) =>
      `${name}: ${visible(JSON.stringify(value), WHOLE)}${name === "cloud" ? GETS_KEY : ""}`
    ),
  ];
}

/** Says what of the network a server that is started finds in its environment: a line, or none. */
export function foundLines(environment: Pick<Environment, "get">): readonly string[] {
  const found = Object.entries(networkEnvironment(environment)).map(([name, value]) => {
    // Whatever stands before the host can be a password, or a part of one.
    const said = /^(?!no_).*proxy$/i.test(name)
      ? value.replace(/^([a-z][\w+.-]*:\/\/)?.*@/is, `$1${REDACTED}@`)
      : value;
    return `${name}=${visible(JSON.stringify(withoutSecrets(name, said)), WHOLE)}`;
  });
  return found.length === 0
    ? []
    : [`each server that is started finds in its environment, as in yours: ${found.join(", ")}`];
}

/** Says what a server is and what it would run or reach, whole, for a person. */
export function serverText(server: ServerDefinition): string {
  switch (server.kind) {
    case "deno":
      return `a module in the sandbox, from the file ${quoted(server.path, WHOLE)}`;
    case "stdio": {
      const command = JSON.stringify([server.command, ...server.args]);
      const { command: own } = plainCommand(server);
      const tries = OF_NPM.test(own)
        ? ` (\`pml learn ${server.name}\` tries whether it can be confined)`
        : "";
      const how = server.confine
        ? "confined to the workspace and its grants"
        : `with your rights${tries}`;
      const at = server.cwd === undefined ? "" : `in the folder ${quoted(server.cwd, WHOLE)} `;
      const steers = command.includes("--node-options") ? ", steered by `--node-options`" : "";
      const installs =
        !INSTALLER.test(own) && INSTALLS.test([server.command, ...server.args].join(" "))
          ? ", runs an installer itself, unpinned"
          : "";
      return `runs the command ${command} ${at}${how}${steers}${installs}${
        given("variables", server.env)
      }`;
    }
    case "http":
      return `a server at ${quoted(server.url, WHOLE)}${given("headers", server.headers)}`;
  }
}

/** Says what is said of the tools of a server, a line for each. */
function settingLines({ name, settings }: ServerDefinition): readonly string[] {
  return [...settings?.of ?? []].map(([tool, { disabled, rename, description, ...setting }]) => {
    const fixed = Object.entries(setting.arguments ?? {}).map(([key, value]) =>
      [key, typeof value === "string" ? value : JSON.stringify(value)] as const
    );
    const said = [
      disabled === true ? "is left out" : "",
      rename === undefined ? "" : `is called ${quoted(rename)}`,
      description === undefined ? "" : `is described as ${quoted(description, WHOLE)}`,
      given("arguments", Object.fromEntries(fixed)).slice(2),
    ].filter(Boolean);
    const which = tool === "*" ? "every other tool" : `the tool ${quoted(tool, WHOLE)}`;
    return `server "${name}": ${which} ${said.join(", ") || "stays as it is"}`;
  });
}

/** Says what is given as it is written, for it may be code; what looks like a secret is left out. */
function given(what: string, values: Readonly<Record<string, string>>): string {
  const said = Object.entries(values).map(([name, value]) => {
    const keys = [...value.matchAll(/\$\{(?!dataFolder\})(\w+)/g)].map(([, key]) => key).join(", ");
    const from = keys === "" ? "" : ` (from ${keys})`;
    const isFilled = keys !== "" && value.replaceAll(/\$\{\w+\}/g, "") === "";
    return isFilled
      ? name + from
      : `${name}=${visible(JSON.stringify(withoutSecrets(name, value)), WHOLE)}${from}`;
  });
  return said.length === 0 ? "" : `, is given the ${what} ${said.join(", ")}`;
}
