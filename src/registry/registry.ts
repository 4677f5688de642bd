/**
 * The public API of the registry module, without the parts that start a process. The package
 * exports `registry.ts`.
 *
 * @module
 */

export { integrityOf } from "../core/hash.ts";
export { canonicalHash, definitionHash } from "../policy/integrity.ts";
export { entryName, type Fqdn, fqdnOf, isVersion, parseFqdn } from "./fqdn.ts";
export {
  answer,
  errorResponse,
  okResponse as ok,
  type RegistryRequest,
  type RegistryResponse,
  toConditionalResponse as conditional,
} from "./answers.ts";
export {
  type Answerer,
  openReference,
  type ReferenceOptions,
  type ReferenceRegistry,
} from "./reference.ts";
export {
  capabilityManifest,
  type CatalogQuery,
  chooseVersion as chosen,
  compareVersions,
  type EntryVersion,
  type RegistryStore,
  type SavedCapability,
  searchText,
  type Versions,
} from "./registry_store.ts";
export { type Signer, signerOf } from "./signer.ts";
export {
  listen,
  type Listener,
  type ListenerOptions,
  type Names,
  refusedSender,
  type RequestOrigin,
} from "../io/listener.ts";
export { type ModuleMeta, type ModuleTool, parseModuleMeta } from "../protocol/tool.ts";
export type { Permissions, ToolDefinition } from "../protocol/tool.ts";
export {
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  quoted,
  textOf,
  visible,
} from "../core/json.ts";
export {
  type Audience,
  ERROR_CODES,
  type ErrorCode,
  PmlError,
  type PmlErrorOptions,
} from "../core/errors.ts";
