/**
 * The functions of the YAML library that PML uses. They are bundled into `yaml.min.js`.
 *
 * @module
 */

export { isNode, isScalar, isSeq, parse, parseDocument, stringify, visit } from "yaml";
export type { Document, Node, Scalar, YAMLSeq } from "yaml";
