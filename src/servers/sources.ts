/**
 * The table of sources. A new source is a file in `sources/`, and a line of `SOURCES`.
 *
 * @module
 */

import type { SourceClass } from "./source.ts";
import { BuiltinSource } from "./sources/builtin.ts";
import { CapabilitySource } from "./sources/capability.ts";
import { FileSource, UntrustedFileSource } from "./sources/file.ts";
import { HubSource } from "./sources/hub.ts";
import { RegistrySource } from "./sources/registry.ts";

/**
 * Every source, in the order of precedence. The order is part of the security model: if two sources
 * list the same name, PML uses the server of the first one. So an untrusted file cannot replace a
 * built-in or a saved capability. The registries may come before the untrusted file, because
 * `RegistrySource` never lists a name that any file has.
 */
export const SOURCES: readonly SourceClass[] = [
  FileSource,
  BuiltinSource,
  RegistrySource,
  CapabilitySource,
  UntrustedFileSource,
  HubSource,
];
