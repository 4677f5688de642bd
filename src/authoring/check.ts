/**
 * Checks a module for its author: everything that can be known without an approval, and without
 * running it outside a sandbox child that has no grants.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import { defined, type Json, quoted, visible } from "../core/json.ts";
import { joinedPermissions, type ModuleMeta, type Permissions } from "../protocol/tool.ts";
import { textOfUtf8 } from "../core/utf8.ts";
import { BUNDLE, findImports, type Imports } from "../servers/module/imports.ts";
import type { Inspection } from "../servers/module/loader.ts";
import { type ModuleCode, ModuleFiles, unloadable } from "../servers/module/module_files.ts";
import { accessOf, permissionsBeyond } from "../policy/grants.ts";
import { permissionLines } from "../policy/permission_lines.ts";
import { findDenied } from "./_denied.ts";
import type { Finding, Say } from "./_finding.ts";
import { loadModule, type LoadOptions } from "../servers/module/load_check.ts";
import { readMeta, sayFunctions } from "./_meta_check.ts";
import { sayArguments, type SchemaChecker, usableSchemas } from "./_schema_check.ts";
import { typeProblems } from "./_type_check.ts";

export type { Finding, SchemaChecker };

/** A tool as its author sees it. */
export interface AuthoredTool {
  readonly name: string;
  readonly permissions: Permissions;
  /** Arguments that its schema accepts, if any were found. */
  readonly example?: Json;
}

/** The result of checking a module. */
export interface ModuleReport {
  readonly path: string;
  /** Whether no check failed. Warnings are not failures. */
  readonly ok: boolean;
  readonly checks: readonly Finding[];
  readonly tools: readonly AuthoredTool[];
  /** All permissions that its tools ask for. */
  readonly permissions: Permissions;
}

/** A checked module, and its metadata. */
export interface CheckedModule {
  readonly report: ModuleReport;
  /** The bytes that were checked; undefined if the file cannot be read. */
  readonly code: ModuleCode | undefined;
  /** The valid part of its metadata; undefined if it does not load. */
  readonly meta: ModuleMeta | undefined;
}

/** The options of a check. */
export interface CheckOptions extends LoadOptions {
  readonly limits: LoadOptions["limits"] & { readonly moduleBytes: number };
  /** Names that a module cannot have. */
  readonly taken: ReadonlySet<string>;
  readonly checker: SchemaChecker;
  /** Whether the types are checked. */
  readonly types: boolean;
}

const MOST_PROBLEMS = 20;

/** Runs all checks of a module, also after one failed. */
export async function checkModule(path: string, options: CheckOptions): Promise<CheckedModule> {
  const look = new ModuleCheck(path, options);
  await look.everything();
  const { checks, tools, code, meta } = look;
  const ok = checks.every(({ state }) => state !== "failed");
  return { report: { path, ok, checks, tools, permissions: askedBy(tools) }, code, meta };
}

/** The checks of one module, and their findings. */
class ModuleCheck {
  readonly checks: Finding[] = [];
  tools: readonly AuthoredTool[] = [];
  code: ModuleCode | undefined;
  meta: ModuleMeta | undefined;
  readonly #path: string;
  readonly #options: CheckOptions;

  constructor(path: string, options: CheckOptions) {
    this.#path = path;
    this.#options = options;
  }

  async everything(): Promise<void> {
    const text = await this.#step("file", (say) => this.#read(say));
    if (text === undefined) return;
    const imports = await this.#step(
      "syntax",
      (say) =>
        findImports(text, this.#path).catch(async (error) => {
          // Deno has a better error for a text that the lexer cannot read.
          if (await this.#load(text, say)) throw error;
        }),
    );
    if (imports === undefined) return;
    await this.#step("imports", (say) => sayImports(imports, say));
    await this.#step("denied", (say) => sayDenied(text, { imports, say }));
    if (imports.loading.length > 0) {
      return this.#add(
        "load",
        "warning",
        "not checked, and neither is the rest: fix the imports first",
      );
    }
    const loaded = await this.#step("load", (say) => this.#load(text, say));
    if (loaded !== undefined) await this.#described(text, loaded);
    if (this.#options.types) await this.#step("types", (say) => this.#types(imports, say));
  }

  /** Runs one check. If it reports nothing, it passed. */
  async #step<T>(name: string, look: (say: Say) => T | Promise<T>): Promise<T | undefined> {
    const before = this.checks.length;
    const say: Say = (state, message, details = {}) => {
      if (state !== "ok" || this.checks.length === before) {
        this.#add(name, state, message, details);
      }
    };
    try {
      const value = await look(say);
      const well = WELL[name];
      if (well !== undefined) say("ok", well);
      return value;
    } catch (error) {
      this.#options.signal.throwIfAborted();
      const { message, hint } = asPmlError(error);
      say("failed", this.#short(message), { hint });
      return undefined;
    }
  }

  #add(name: string, ...[state, message, details]: Parameters<Say>): void {
    this.checks.push({ name, state, message, ...defined({ ...details }) });
  }

  #read(say: Say): string | undefined {
    const { moduleBytes } = this.#options.limits;
    const source = { kind: "file", name: "module", path: this.#path } as const;
    this.code = new ModuleFiles().identify(source, moduleBytes);
    const { code } = this.code;
    try {
      const text = textOfUtf8(code);
      say("ok", `${code.length} bytes of at most ${moduleBytes}`);
      return text;
    } catch {
      say("failed", "it is not UTF-8", { hint: "Save it as UTF-8" });
      return undefined;
    }
  }

  async #load(text: string, say: Say): Promise<Inspection | undefined> {
    const loaded = await loadModule(text, this.#options);
    const { inspection, printed, isSyntax = false, why = "", line, column } = loaded;
    if (!isSyntax) this.#add("syntax", "ok", "it reads as TypeScript");
    if (printed) {
      const hint = "Log in a tool's function, with host.log";
      say("warning", "it prints something while it loads", { hint });
    }
    if (inspection !== undefined) {
      if (!printed) this.#add("load", "ok", "it loads without any grant");
      return inspection;
    }
    this.#add(isSyntax ? "syntax" : "load", "failed", why, {
      line,
      column,
      hint: isSyntax
        ? `Fix the syntax error${line === undefined ? "" : ` in line ${line}`}`
        : "It is loaded without any grant: do all work in the functions of its tools",
    });
    return undefined;
  }

  async #described(text: string, { meta, exports }: Inspection): Promise<void> {
    const { taken } = this.#options;
    const read = await this.#step(
      "meta",
      (say) => readMeta(meta, { text, path: this.#path, taken, say }),
    );
    if (read === undefined) return;
    const { name, tools } = this.meta = read.meta;
    await this.#step("functions", (say) => sayFunctions(read, { exports, text, say }));
    const { checker } = this.#options;
    const usable = await this.#step("schemas", (say) => usableSchemas(tools, checker, say));
    const examples = await this.#step(
      "arguments",
      (say) => sayArguments(usable ?? [], checker, say),
    );
    this.tools = tools.map(({ definition: { name }, permissions }) =>
      defined({ name, permissions, example: examples?.get(name) })
    );
    await this.#step("permissions", (say) => this.#permissions(name, say));
  }

  #permissions(server: string, say: Say): void {
    const { workspace } = this.#options;
    const permissions = askedBy(this.tools);
    const access = accessOf(permissions, { workspace, grants: undefined });
    const beyond = permissionsBeyond(permissions, workspace);
    const lines = permissionLines(permissions, access, workspace).join("; ");
    if (Object.keys(beyond).length === 0) return say("ok", lines);
    const grants = JSON.stringify({ [server]: beyond });
    say("warning", lines, { hint: `To grant it, write into .pml.json: "grants": ${grants}` });
  }

  async #types({ types }: Imports, say: Say): Promise<void> {
    const { home, signal } = this.#options;
    const problems = await typeProblems(this.#path, { home, specifiers: types, signal });
    for (const { message, ...at } of problems.slice(0, MOST_PROBLEMS)) {
      say("failed", message, at);
    }
    const more = problems.length - MOST_PROBLEMS;
    if (more > 0) say("failed", `and ${more} more problems`);
  }

  /** The report already shows the path, so it is removed from messages. */
  #short(message: string): string {
    const start = unloadable(this.#path, "", {}).message;
    return visible(message.startsWith(start) ? message.slice(start.length) : message, 400);
  }
}

/** The messages of checks that found nothing wrong. */
const WELL: Readonly<Record<string, string>> = {
  imports: "it is one file",
  denied: "it names nothing that the sandbox denies",
  functions: "each tool has its function",
  schemas: "the gateway can use each",
  types: "no problem",
};

function askedBy(tools: readonly AuthoredTool[]): Permissions {
  return joinedPermissions(tools.map(({ permissions }) => permissions));
}

function sayImports({ loading }: Imports, say: Say): void {
  for (const { specifier, ...place } of loading) {
    const isOurs = /@casys\/pml\b/.test(specifier);
    say("failed", `it imports ${quoted(specifier)}, but a module is one file`, {
      ...place,
      hint: isOurs ? "Write `import type`: only types can be imported from there" : BUNDLE,
    });
  }
}

function sayDenied(
  text: string,
  { imports, say }: { readonly imports: Imports; readonly say: Say },
): void {
  for (const { specifier, ...place } of imports.dynamic) {
    const hint = "Bundle it into the module, or do not use it";
    say("warning", `import(${quoted(specifier)}) is denied when it runs`, { hint, ...place });
  }
  for (const { name, instead, ...place } of findDenied(text)) {
    say("warning", `${name} is denied when it runs`, { hint: instead, ...place });
  }
}
