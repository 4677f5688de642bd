/**
 * What authors of modules use: a look at a module, and a registry of their own.
 *
 * @module
 */

import type { Config } from "./config/config.ts";
import type { Schemas } from "./gateway/schemas.ts";
import { checkModule, type CheckOptions, type ModuleReport } from "./local/check.ts";
import { describeModule } from "./local/describing.ts";
import { Folder } from "./registry/folder.ts";
import { openReference, type Reference, type ReferenceOptions } from "./registry/reference.ts";

/** What authors' tools stand in. */
export interface AuthorsOptions {
  readonly config: () => Config;
  /** Names that no module can have. */
  readonly taken: ReadonlySet<string>;
  readonly schemas: Schemas;
  readonly onError: (error: Error) => void;
}

/** How a folder is served as a registry. */
export interface RegistryServing extends Pick<ReferenceOptions, "host" | "port"> {
  /** Is told what is left out, and why. */
  readonly warn: (message: string) => void;
  readonly signal: AbortSignal;
}

/** The tools of authors. */
export class Authors {
  readonly #options: AuthorsOptions;

  /** Takes what they stand in; nothing is started yet. */
  constructor(options: AuthorsOptions) {
    this.#options = options;
  }

  /** Looks a module over for its author. */
  async checkModule(
    path: string,
    options: Pick<CheckOptions, "types" | "signal">,
  ): Promise<ModuleReport> {
    const { config, taken, schemas } = this.#options;
    return await checkModule(path, {
      ...options,
      ...config(),
      taken,
      compile: (schema) => schemas.validator(schema),
    });
  }

  /** Serves a folder as a registry, read-only, until what this gives is disposed. */
  async serveRegistry(
    path: string,
    { warn, signal, ...listening }: RegistryServing,
  ): Promise<Reference & { readonly size: number }> {
    const { config, onError } = this.#options;
    const { home, limits } = config();
    const folder = new Folder({
      path,
      maxBytes: limits.moduleBytes,
      describe: (file, code) =>
        describeModule(file, code, { home, limits, signal, workspace: path }),
      warn,
    });
    const { length } = await folder.all();
    const reference = await openReference(folder, { ...listening, onError });
    return { ...reference, size: length };
  }
}
