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
 * Every source, in the order of precedence, which is part of the security model: of two servers
 * with one name, the first one counts. An untrusted file therefore cannot replace a built-in or a
 * saved capability. It comes before registries all the same: they never list a name that a file
 * has, so no registry learns that name.
 */
export const SOURCES: readonly SourceClass[] = [
  FileSource,
  BuiltinSource,
  RegistrySource,
  CapabilitySource,
  UntrustedFileSource,
  HubSource,
];
