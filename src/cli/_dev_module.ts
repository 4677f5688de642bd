/**
 * The module that `pml dev` follows: checks it, and calls its tools through the pipeline.
 *
 * @module
 */

import type { Authors } from "../authoring/authors.ts";
import { takeDraft } from "../authoring/draft.ts";
import { DraftAnswer, DraftApproval } from "../authoring/draft_approval.ts";
import { authorsOf } from "../authoring/open_authors.ts";
import { asPmlError } from "../core/errors.ts";
import { type JsonObject, quoted } from "../core/json.ts";
import { joinedPermissions, type ModuleTool, NO_PERMISSIONS } from "../protocol/tool.ts";
import { toolId } from "../core/tool_id.ts";
import { realPathIfAny } from "../io/place.ts";
import { moduleOf } from "../servers/kinds.ts";
import { parseArguments, parseObject } from "./_arguments.ts";
import { answered } from "./_call.ts";
import type { CommandContext } from "./_command_context.ts";
import { adviceOn, type GrantAdvice, missingPermission } from "./_dev_grant.ts";
import type { DevShown } from "./_dev_shown.ts";
import { usage } from "./_failure.ts";
import { resultText } from "./_result.ts";

type Checked = Awaited<ReturnType<Authors["checkModule"]>>;

/** The options of a module that is followed. */
export interface DevModuleOptions extends CommandContext {
  /** A real path, if the file was there. */
  readonly path: string;
  readonly types: boolean;
  readonly output: DevShown;
  /** Returns whether the file is another one than the one that was checked. */
  readonly isStale: () => boolean;
}

/** A call of one of the tools. */
interface DevCall {
  readonly tool: string;
  readonly arguments: JsonObject;
}

/** Checks a module and calls its tools. */
export class DevModule {
  readonly #at: DevModuleOptions;
  readonly #answer = new DraftAnswer();
  readonly #remembered = new Map<string, DevCall>();
  #checked: Checked | undefined;
  #last: DevCall | undefined;
  #hasFailed = false;

  /** Reads nothing yet. */
  constructor(at: DevModuleOptions) {
    this.#at = at;
  }

  /** Whether the last check or the last call failed. */
  get isFailed(): boolean {
    return this.#hasFailed || this.#checked?.report.ok !== true;
  }

  /** Checks the file as it is now, and makes the last call again. */
  async look(): Promise<void> {
    const { app, signal, path, types, output } = this.#at;
    const since = Date.now();
    const checked = await (await authorsOf(app)).checkModule(path, { types, signal });
    this.#checked = checked;
    (await (await app.callPath()).machine.modules()).rest();
    const { ok, checks } = checked.report;
    const { server, runs } = this.#place();
    const tools = this.#tools().map(({ definition }) => definition.name);
    output.show({
      event: "check",
      ok,
      ms: Date.now() - since,
      server,
      runs,
      tools,
      // Grants are reported when a permission is missing.
      checks: checks.filter(({ name }) => name !== "permissions"),
    });
    const last = this.#last;
    if (last !== undefined && tools.includes(last.tool)) await this.#call(() => last, true);
  }

  /** Makes the call of a line, or repeats the last call if the line is empty. */
  async type(line: string): Promise<void> {
    if (line === "help" && this.#tool(line) === undefined) {
      const tools = this.#tools().map(({ definition }) => definition.name);
      return this.#at.output.show({ event: "help", tools });
    }
    if (line !== "" || this.#last !== undefined) await this.#call(() => this.#read(line), false);
  }

  #read(line: string): DevCall {
    const [name = this.#last?.tool ?? "", ...pairs] = wordsOf(line);
    const tool = name.slice(name.indexOf(":") + 1);
    const schema = this.#tool(tool)?.definition.inputSchema;
    if (schema === undefined) {
      const names = this.#tools().map(({ definition }) => definition.name).join(", ");
      throw usage(
        `Cannot call ${quoted(tool)}: the module has no such tool`,
        names === "" ? "Fix the module first" : `It has ${names}`,
      );
    }
    const object = /^\S+\s+(\{.*)$/s.exec(line)?.[1];
    const args = object ? parseObject(object) : parseArguments(pairs, { base: {}, schema });
    const isBare = object === undefined && pairs.length === 0;
    return isBare && this.#remembered.get(tool) || { tool, arguments: args };
  }

  async #call(read: () => DevCall, repeated: boolean): Promise<void> {
    const { app, signal, output, isStale } = this.#at;
    const since = Date.now();
    let call: DevCall | undefined;
    const about = (message: string) => ({
      ...call,
      repeated,
      ms: Date.now() - since,
      stale: isStale(),
      grant: call && this.#advice(call.tool, message),
    });
    try {
      const { tool, arguments: args } = this.#last = call = read();
      this.#remembered.set(tool, call);
      const { server, draft } = this.#place();
      await takeDraft(app, draft);
      const result = await answered({ id: toolId(server, tool), arguments: args }, this.#at);
      this.#hasFailed = result.isError === true;
      const message = this.#hasFailed ? resultText(result) : "";
      output.show({ event: "call", ...call, ...about(message), result });
    } catch (error) {
      signal.throwIfAborted();
      this.#hasFailed = true;
      const { code, message, hint: ownHint } = asPmlError(error);
      // The hint of a call is written for a model.
      const { properties } = call && this.#tool(call.tool)?.definition.inputSchema || {};
      const hint = code === "BAD_ARGUMENTS" && properties
        ? `It takes ${Object.keys(properties).join(", ")}`
        : ownHint;
      output.show({ event: "error", ...about(message), code, message, hint });
    }
  }

  #advice(tool: string, message: string): GrantAdvice | undefined {
    const missing = missingPermission(message);
    if (missing === undefined) return undefined;
    const { app, path } = this.#at;
    const { server, draft } = this.#place();
    const { workspace, grants } = app.config();
    return adviceOn(missing, {
      server,
      path,
      workspace,
      file: app.policy.rulesFile,
      permissions: this.#tool(tool)?.permissions ?? NO_PERMISSIONS,
      granted: draft === undefined || draft.approval ? grants[server] ?? {} : undefined,
    });
  }

  #tools(): readonly ModuleTool[] {
    return this.#checked?.meta?.tools ?? [];
  }

  #tool(tool: string): ModuleTool | undefined {
    return this.#tools().find(({ definition }) => definition.name === tool);
  }

  /** Returns the name that the module has now, and the draft, which has grants if a file names it. */
  #place() {
    const { app, path } = this.#at;
    const { rulesFile } = app.policy;
    const own = app.loaded().file?.servers.find((one) => {
      const module = moduleOf(one);
      return module !== undefined && realPathIfAny(module.path) === path &&
        app.directory.at(one.name).definition === one;
    });
    const { meta, code } = this.#checked ?? {};
    if (own !== undefined) {
      const { name } = own;
      const runs = `It has what ${rulesFile} grants; changed code asks you once`;
      // Until the file is trusted, the question about the file comes first.
      if (code === undefined || !app.config().trusted) return { server: name, runs };
      const approval = new DraftApproval(app, {
        definition: own,
        path,
        integrity: code.integrity,
        permissions: joinedPermissions(this.#tools().map(({ permissions }) => permissions)),
        answer: this.#answer,
      });
      return { server: name, runs, draft: { name, path, code, approval } };
    }
    let server = meta?.name ?? "module";
    // It must not be taken for another server.
    while (app.directory.isTaken(server)) server += "-dev";
    const runs = `It is not in ${rulesFile}: it runs in the sandbox with nothing granted`;
    return { server, runs, ...(code && { draft: { name: server, path, code } }) };
  }
}

/** Returns the words of a line. Quotes keep spaces together, as in a shell. */
function wordsOf(line: string): readonly string[] {
  const words = line.match(/(?:"[^"]*"|'[^']*'|\S)+/g) ?? [];
  return words.map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}
