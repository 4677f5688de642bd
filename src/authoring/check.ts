/**
 * Checks a module for its author. The checks need no approval, because the module runs only in a
 * sandbox child without grants.
 *
 * @module
 */

import type { Config } from "../config/current_config.ts";
import { asPmlError } from "../core/errors.ts";
import { type Json, quoted, visible, withoutUndefined } from "../core/json.ts";
import { type ModuleMeta, type Permissions, unionOfPermissions } from "../protocol/tool.ts";
import { textOfUtf8 } from "../core/utf8.ts";
import { BUNDLE_HINT, findImports, type Imports } from "../servers/module/imports.ts";
import type { Inspection } from "../servers/module/loader.ts";
import { type ModuleCode, ModuleFiles, unloadableError } from "../servers/module/module_files.ts";
import { realPathIfAny } from "../io/path_info.ts";
import { accessOf } from "../policy/grants.ts";
import { permissionLines, ungrantedPermissions } from "../policy/permission_lines.ts";
import { moduleOf } from "../servers/kinds.ts";
import { findDenied } from "./_denied.ts";
import type { Finding, ReportFinding } from "./_finding.ts";
import { loadModule } from "../servers/module/load_check.ts";
import { readMeta, reportFunctions } from "./_meta_check.ts";
import { reportArguments, type SchemaChecker, usableSchemas } from "./_schema_check.ts";
import { typeProblems } from "./_type_check.ts";

export type { Finding, SchemaChecker };

/** The facts about a tool that its author is shown. */
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

/** The services of PML that the check of a module uses. */
export interface CheckHost {
  readonly config: Pick<Config, "home" | "workspace" | "limits" | "grants" | "servers" | "ignored">;
  /** The names of built-in servers, which a module cannot have. */
  readonly builtinNames: ReadonlySet<string>;
  readonly checker: SchemaChecker;
}

/** The maximum number of type errors that are reported one by one. */
const MOST_PROBLEMS = 20;

/** The checks of one module, and their findings. */
export class ModuleCheck {
  readonly #checks: Finding[] = [];
  #tools: readonly AuthoredTool[] = [];
  #code: ModuleCode | undefined;
  #meta: ModuleMeta | undefined;
  readonly #path: string;
  readonly #host: CheckHost;
  readonly #signal: AbortSignal;

  /** Creates the checks of a module. Reads nothing yet. */
  constructor(path: string, host: CheckHost, signal: AbortSignal) {
    this.#path = path;
    this.#host = host;
    this.#signal = signal;
  }

  /** Runs all checks, even if one fails. Checks the types only if `withTypes` is set. */
  async run(withTypes: boolean): Promise<CheckedModule> {
    await this.#runAll(withTypes);
    const [path, checks, tools] = [this.#path, this.#checks, this.#tools];
    const ok = checks.every(({ state }) => state !== "failed");
    const report = { path, ok, checks, tools, permissions: requestedPermissions(tools) };
    return { report, code: this.#code, meta: this.#meta };
  }

  async #runAll(withTypes: boolean): Promise<void> {
    const text = await this.#step("file", (report) => this.#read(report));
    if (text === undefined) return;
    const imports = await this.#step(
      "syntax",
      (report) =>
        findImports(text, this.#path).catch(async (error) => {
          // If the lexer cannot read the text, Deno's error is more useful.
          if (await this.#load(text, report)) throw error;
        }),
    );
    if (imports === undefined) return;
    await this.#step("imports", (report) => reportImports(imports, report));
    await this.#step("denied", (report) => reportDenied(text, { imports, report }));
    if (imports.loading.length > 0) {
      return this.#add(
        "load",
        "warning",
        "not checked, and neither is the rest: fix the imports first",
      );
    }
    const loaded = await this.#step("load", (report) => this.#load(text, report));
    if (loaded !== undefined) await this.#checkMeta(text, loaded);
    if (withTypes) await this.#step("types", (report) => this.#types(imports, report));
  }

  /** Runs one check. A check that reports nothing has passed. */
  async #step<T>(
    name: string,
    check: (report: ReportFinding) => T | Promise<T>,
  ): Promise<T | undefined> {
    const before = this.#checks.length;
    const report: ReportFinding = (state, message, details = {}) => {
      if (state !== "ok" || this.#checks.length === before) {
        this.#add(name, state, message, details);
      }
    };
    try {
      const value = await check(report);
      const passed = PASSED[name];
      if (passed !== undefined) report("ok", passed);
      return value;
    } catch (error) {
      this.#signal.throwIfAborted();
      const { message, hint } = asPmlError(error);
      report("failed", this.#short(message), { hint });
      return undefined;
    }
  }

  #add(name: string, ...[state, message, details]: Parameters<ReportFinding>): void {
    this.#checks.push({ name, state, message, ...withoutUndefined({ ...details }) });
  }

  #read(report: ReportFinding): string | undefined {
    const { moduleBytes } = this.#host.config.limits;
    const source = { kind: "file", name: "module", path: this.#path } as const;
    this.#code = new ModuleFiles().identify(source, moduleBytes);
    const { code } = this.#code;
    try {
      const text = textOfUtf8(code);
      report("ok", `${code.length} bytes of at most ${moduleBytes}`);
      return text;
    } catch {
      report("failed", "it is not UTF-8", { hint: "Save it as UTF-8" });
      return undefined;
    }
  }

  async #load(text: string, report: ReportFinding): Promise<Inspection | undefined> {
    const loaded = await loadModule(text, { ...this.#host.config, signal: this.#signal });
    const { inspection, printed, isSyntax = false, why = "", line, column } = loaded;
    if (!isSyntax) this.#add("syntax", "ok", "it reads as TypeScript");
    if (printed) {
      const hint = "Log in a tool's function, with host.log";
      report("warning", "it prints something while it loads", { hint });
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

  async #checkMeta(text: string, { meta, exports }: Inspection): Promise<void> {
    const { builtinNames, checker } = this.#host;
    const read = await this.#step(
      "meta",
      (report) => readMeta(meta, { text, path: this.#path, builtinNames, report }),
    );
    if (read === undefined) return;
    const { name, tools } = this.#meta = read.meta;
    await this.#step("functions", (report) => reportFunctions(read, { exports, text, report }));
    const usable = await this.#step("schemas", (report) => usableSchemas(tools, checker, report));
    const examples = await this.#step(
      "arguments",
      (report) => reportArguments(usable ?? [], checker, report),
    );
    this.#tools = tools.map(({ definition: { name }, permissions }) =>
      withoutUndefined({ name, permissions, example: examples?.get(name) })
    );
    await this.#step("permissions", (report) => this.#permissions(name, report));
  }

  #permissions(name: string, report: ReportFinding): void {
    const { workspace, grants: allGrants, servers, ignored } = this.#host.config;
    const path = realPathIfAny(this.#path);
    const server = servers.find((definition) => {
      const module = moduleOf(definition);
      return module !== undefined && realPathIfAny(module.path) === path;
    });
    const grants = server && allGrants[server.name];
    const permissions = requestedPermissions(this.#tools);
    // Each tool has its own access, as in calls.
    const access = unionOfPermissions(
      this.#tools.map(({ permissions }) => accessOf(permissions, { workspace, grants })),
    );
    const lines = permissionLines(permissions, access, workspace).join("; ");
    const ungranted = ungrantedPermissions(permissions, access, workspace);
    if (Object.keys(ungranted).length === 0) return report("ok", lines);
    if (ignored.includes("grants")) {
      const hint = "Run `pml trust` first: PML ignores the grants in .pml.json until then";
      return report("warning", lines, { hint });
    }
    const entry = unionOfPermissions([grants ?? {}, ungranted]);
    const lists = Object.entries(entry).filter(([, items]) => items.length > 0);
    const text = JSON.stringify({ [server?.name ?? name]: Object.fromEntries(lists) });
    report("warning", lines, { hint: `To grant it, write into .pml.json: "grants": ${text}` });
  }

  async #types({ types }: Imports, report: ReportFinding): Promise<void> {
    const [{ home }, signal] = [this.#host.config, this.#signal];
    const problems = await typeProblems(this.#path, { home, specifiers: types, signal });
    for (const { message, ...place } of problems.slice(0, MOST_PROBLEMS)) {
      report("failed", message, place);
    }
    const more = problems.length - MOST_PROBLEMS;
    if (more > 0) report("failed", `and ${more} more problems`);
  }

  /** Removes the path from a message, because the report already shows it. */
  #short(message: string): string {
    const start = unloadableError(this.#path, "", {}).message;
    return visible(message.startsWith(start) ? message.slice(start.length) : message, 400);
  }
}

/** The messages of checks that passed. */
const PASSED: Readonly<Record<string, string>> = {
  imports: "it is one file",
  denied: "it names nothing that the sandbox denies",
  functions: "each tool has its function",
  schemas: "the gateway can use each",
  types: "no problem",
};

function requestedPermissions(tools: readonly AuthoredTool[]): Permissions {
  return unionOfPermissions(tools.map(({ permissions }) => permissions));
}

function reportImports({ loading }: Imports, report: ReportFinding): void {
  for (const { specifier, ...place } of loading) {
    const isOurs = /@casys\/pml\b/.test(specifier);
    report("failed", `it imports ${quoted(specifier)}, but a module is one file`, {
      ...place,
      hint: isOurs ? "Write `import type`: only types can be imported from there" : BUNDLE_HINT,
    });
  }
}

function reportDenied(
  text: string,
  { imports, report }: { readonly imports: Imports; readonly report: ReportFinding },
): void {
  for (const { specifier, ...place } of imports.dynamic) {
    const hint = "Bundle it into the module, or do not use it";
    report("warning", `import(${quoted(specifier)}) is denied when it runs`, { hint, ...place });
  }
  for (const { name, instead, ...place } of findDenied(text)) {
    report("warning", `${name} is denied when it runs`, { hint: instead, ...place });
  }
}
