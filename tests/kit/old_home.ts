/**
 * A PML home and a workspace that an earlier version of PML made, and the servers that they use.
 *
 * The fixture is one JSON file: the texts of all files. The folder, the addresses of servers, and
 * the names that the earlier version derived from them are placeholders. They are filled in without
 * code of PML, so that a version that derives other names does not find its files.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AuthorizationServer } from "./authorization_server.ts";
import { repoFile } from "./pml_command.ts";
import { FakeRegistry, manifestEntry, moduleEntry } from "./fake_registry.ts";
import { makeWorkspace, type Workspace } from "./workspace.ts";

/** A call of a client, and the text that the earlier version answered. */
export interface OldCall {
  readonly name: string;
  readonly args: Record<string, unknown>;
  readonly text: string;
}

/** An earlier home. */
export interface OldHome {
  /** The commit of the version that made it. */
  readonly version: string;
  /** The texts whose SHA-256 hashes are in files or their names, and how many digits are there. */
  readonly hashes: Readonly<Record<string, readonly [text: string, length: number]>>;
  /** The lines of each file, by its path below the folder around the workspace and the home. */
  readonly files: Readonly<Record<string, readonly string[]>>;
  readonly links: Readonly<Record<string, string>>;
  readonly executables: readonly string[];
  /** The decisions of the earlier version, by `SERVER:TOOL`. */
  readonly decisions: Readonly<Record<string, OldDecision>>;
  /** The calls that needed no further question. */
  readonly calls: readonly OldCall[];
  /** How many records of the journal the earlier version verified. */
  readonly records: number;
  /** The token that `pml token new` showed. */
  readonly token: string;
}

/** The answer of `pml why --json` about a tool. */
export interface OldDecision {
  readonly verdict: string;
  readonly rule: string;
  /** The approved hashes of the server's code and of the tool. */
  readonly approved?: Readonly<Record<string, string>>;
}

/** The addresses that an earlier home depends on. */
export interface Places {
  /** The folder around the workspace and the home. */
  readonly ROOT: string;
  /** The origin of the servers over HTTP. */
  readonly SITE: string;
  /** The origin of the registry. */
  readonly REGISTRY: string;
  /** The origin of the registry of npm. */
  readonly NPM: string;
}

/** The bits of executable files. */
export const MODE_EXECUTABLE = 0o111;

/** Returns all placeholders with their values. */
export function placeholdersOf(
  { hashes }: Pick<OldHome, "hashes">,
  places: Places,
): readonly (readonly [name: string, value: string])[] {
  const values: [string, string][] = Object.entries(places);
  // A hashed text may contain another hash, which comes before it.
  for (const [name, [text, length]] of Object.entries(hashes)) {
    const hash = createHash("sha256").update(filled(text, values)).digest("hex");
    values.push([name, hash.slice(0, length)]);
  }
  return values;
}

/** Replaces placeholders of the form `{{NAME}}`. */
export function filled(
  text: string,
  values: readonly (readonly [name: string, value: string])[],
): string {
  return values.reduce((all, [name, value]) => all.replaceAll(`{{${name}}}`, value), text);
}

/** Writes an earlier home into a temporary folder. */
export async function placeOldHome(home: OldHome, site: OldSite): Promise<Workspace> {
  const ws = await makeWorkspace({ env: site.env });
  // No registry of npm runs: the package is installed.
  const places = { ROOT: ws.root, ...site.places, NPM: "http://127.0.0.1:1" };
  const values = placeholdersOf(home, places);
  const place = async (name: string, write: (path: string) => Promise<void>) => {
    const path = join(ws.root, filled(name, values));
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await write(path);
  };
  for (const [name, lines] of Object.entries(home.files)) {
    const mode = home.executables.includes(name) ? 0o700 : 0o600;
    const text = filled(lines.join("\n"), values);
    await place(name, (path) => writeFile(path, text, { mode }));
  }
  for (const [name, target] of Object.entries(home.links)) {
    await place(name, (path) => symlink(target, path));
  }
  return ws;
}

/** Reads the home that a version made. */
export async function readOldHome(version: string): Promise<OldHome> {
  return JSON.parse(await readFile(repoFile(`tests/fixtures/home_${version}.json`), "utf8"));
}

/** Returns the only sign-in of an earlier home. */
export function signInOf({ files }: OldHome): OldSignIn {
  const [found] = Object.entries(files).filter(([name]) => /\/sign_ins\/(?!client)/.test(name));
  return JSON.parse(found?.[1].join("\n") ?? "");
}

/** The sign-in of an earlier home, for the authorization server of a test. */
export interface OldSignIn {
  readonly client: { readonly client_id: string };
  readonly accessToken: string;
  readonly refreshToken: string;
}

const GREETER = `export const __meta__ = {
  name: "greeter", version: "1.0.0", description: "Says hello",
  tools: {
    greet: {
      description: "Greet a user by name",
      inputSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    },
  },
};
export const greet = ({ name }) => "Hello " + name;
`;

const COUNT = `export const __meta__ = {
  name: "fs", version: "1.0.0", description: "The capability count",
  tools: {
    count: {
      description: "Count the lines of a file",
      inputSchema: { type: "object", properties: { path: { type: "string" } } },
    },
  },
};
export const count = ({ path = "none" }) => "counted " + path;
`;

/** The value of the key of the server `web`. */
export const WEB_KEY = "web-key-0123456789";

/** The servers over HTTP and the registry that an earlier home uses. */
export class OldSite implements AsyncDisposable {
  /** The requests for a token by a refresh token. */
  refreshes = 0;
  /** The tokens that were revoked. */
  readonly revoked: (string | null)[] = [];
  readonly registry: FakeRegistry;
  readonly oauth: AuthorizationServer;
  readonly #renewed = new Set<string>();

  private constructor(registry: FakeRegistry, known: OldSignIn | undefined) {
    this.registry = registry;
    this.oauth = new AuthorizationServer({
      scopes: ["read"],
      script: ({ method, path, form }) => {
        if (known === undefined || method !== "POST") return undefined;
        if (path === "/token") return this.#renew(known, form);
        if (path !== "/revoke") return undefined;
        this.revoked.push(form.get("token"));
        return new Response();
      },
    });
    this.oauth.resources.add(`${this.oauth.origin}/docs/mcp`);
    this.oauth.mounted = (request) => this.#serve(request);
  }

  /** Starts it. `known` is a sign-in of another process. */
  static async open(known?: OldSignIn): Promise<OldSite> {
    const registry = await FakeRegistry.open([
      await moduleEntry("greeter", GREETER),
      await moduleEntry("fs:count", COUNT),
      manifestEntry("offered", {
        type: "stdio",
        install: { command: "npx", args: ["-y", "packaged@1.0.0"] },
      }),
    ]);
    return new OldSite(registry, known);
  }

  /** The origins. */
  get places(): Pick<Places, "SITE" | "REGISTRY"> {
    return { SITE: this.oauth.origin, REGISTRY: this.registry.origin };
  }

  /** The variables that PML needs to use it. */
  get env(): Readonly<Record<string, string>> {
    return { PML_REGISTRIES: this.registry.url };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.registry[Symbol.asyncDispose]();
    await this.oauth[Symbol.asyncDispose]();
  }

  #renew({ client, refreshToken }: OldSignIn, form: URLSearchParams): Response {
    const isIt = form.get("refresh_token") === refreshToken &&
      form.get("client_id") === client.client_id &&
      form.get("resource") === `${this.oauth.origin}/docs/mcp`;
    if (!isIt) return Response.json({ error: "invalid_grant" }, { status: 400 });
    this.refreshes += 1;
    const access = `access-renewed-${this.refreshes}`;
    this.#renewed.add(access);
    const token = { access_token: access, token_type: "Bearer", expires_in: 3_600 };
    return Response.json(token, { headers: { "cache-control": "no-store" } });
  }

  #serve(request: Request): Promise<Response> | undefined {
    const { pathname } = new URL(request.url);
    const { origin } = this.oauth;
    if (pathname === "/.well-known/oauth-protected-resource/docs/mcp") {
      const metadata = {
        resource: `${origin}/docs/mcp`,
        authorization_servers: [origin],
        bearer_methods_supported: ["header"],
        scopes_supported: ["read"],
      };
      return Promise.resolve(Response.json(metadata));
    }
    if (pathname === "/docs/mcp") return this.#serveDocs(request);
    if (pathname === "/web/mcp") return this.#serveWeb(request);
    return undefined;
  }

  async #serveDocs(request: Request): Promise<Response> {
    const [, token = ""] = /^Bearer (\S+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
    const access = this.oauth.tokens.access(token);
    if (this.#renewed.has(token) || access !== undefined && this.oauth.tokens.holds(access)) {
      return await serveTools(request, [tool("find", "Find a page")]);
    }
    const metadata = `${this.oauth.origin}/.well-known/oauth-protected-resource/docs/mcp`;
    const challenge = `Bearer resource_metadata="${metadata}", scope="read"`;
    return new Response(null, { status: 401, headers: { "www-authenticate": challenge } });
  }

  async #serveWeb(request: Request): Promise<Response> {
    if (request.headers.get("x-web-key") !== WEB_KEY) return new Response(null, { status: 401 });
    return await serveTools(request, [tool("fetch", "Fetch a page"), tool("post", "Post a page")]);
  }
}

function tool(name: string, description: string): Record<string, unknown> {
  const inputSchema = { type: "object", properties: { page: { type: "string" } } };
  return { name, description, inputSchema };
}

/** Serves tools that return their name and arguments, in the revisions with a handshake. */
async function serveTools(request: Request, tools: readonly unknown[]): Promise<Response> {
  if (request.method !== "POST") return new Response(null, { status: 405 });
  const { id, method, params } = await request.json();
  if (id === undefined) return new Response(null, { status: 202 });
  const error = { code: -32601, message: "Method not found" };
  const results: Readonly<Record<string, unknown>> = {
    initialize: {
      protocolVersion: "2025-11-25",
      capabilities: { tools: {} },
      serverInfo: { name: "old-site", version: "1.0.0" },
      instructions: "Find pages first.",
    },
    "tools/list": { tools },
    "tools/call": {
      content: [{ type: "text", text: `${params?.name} ${JSON.stringify(params?.arguments)}` }],
    },
  };
  const result = results[method];
  return Response.json({ jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) });
}
