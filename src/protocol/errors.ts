/**
 * The errors of JSON-RPC, sent and received.
 *
 * @module
 */

import { numberOf } from "../core/exact_number.ts";
import { objectOf, textOf, visibleLines } from "../core/json.ts";

/** The codes, by the names of the specification. */
export const ERROR = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  requestTimeout: -32001,
  resourceNotFound: -32002,
  headerMismatch: -32020,
  missingClientCapability: -32021,
  unsupportedProtocolVersion: -32022,
  /** The error lists URLs that the user must open. Nothing ran. */
  urlElicitationRequired: -32042,
} as const;

/** The codes of refusals over HTTP. No revision defines them, so PML uses the codes of the SDKs. */
export const HTTP_ERROR = {
  refused: -32000,
  noSession: -32001,
} as const;

/** The maximum length of the message of a received error, in characters. */
const MESSAGE_MAX = 2_000;

/** An error of JSON-RPC. */
export interface ErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** The error for a method that does not exist. */
export const NO_SUCH_METHOD: ErrorObject = {
  code: ERROR.methodNotFound,
  message: "Method not found",
};

/** An error that answers a request. */
export class RpcError extends Error implements ErrorObject {
  override name = "RpcError";
  /** An integer. */
  readonly code: number;
  readonly data: unknown;

  /** Creates the error of an answer. */
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }

  /** Reads the `error` of an answer. Its message may be empty. */
  static of(error: unknown): RpcError {
    const { code, message, data } = objectOf(error);
    const number = numberOf(code);
    const safeCode = Number.isSafeInteger(number) ? Number(number) : ERROR.internalError;
    return new RpcError(safeCode, visibleLines(textOf(message), MESSAGE_MAX), data);
  }
}
