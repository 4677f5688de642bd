/**
 * The codes of JSON-RPC errors that PML sends.
 *
 * @module
 */

/** The codes, by the names of the specification. */
export const ERROR = {
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  requestTimeout: -32001,
  headerMismatch: -32020,
  unsupportedProtocolVersion: -32022,
} as const;

/** An error of JSON-RPC. */
export interface ErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** An error that a request is answered with. The SDK's own errors have the same fields. */
export class RpcError extends Error implements ErrorObject {
  override name = "RpcError";
  /** An integer. */
  readonly code: number;
  readonly data: unknown;

  /** Makes the error for a client. */
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}
