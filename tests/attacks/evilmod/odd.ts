// deno-lint-ignore-file no-explicit-any
/**
 * A hostile module that returns and throws what no honest one does.
 *
 * @module
 */

export const __meta__ = { name: "evil", tools: { odd: {}, thrown: {}, polluted: {} } };

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let at = 0; at < depth; at++) value = [value];
  return value;
}

function cycle(): unknown {
  const value: Record<string, unknown> = {};
  value.self = value;
  return value;
}

const ODD: Record<string, () => unknown> = {
  undefined: () => undefined,
  function: () => () => 1,
  symbol: () => Symbol("x"),
  bigint: () => 1n,
  nan: () => ({ a: NaN, b: Infinity, c: -0 }),
  cycle,
  deep: () => nested(100_000),
  deeper: () => nested(1_000),
  getter: () => ({
    get a() {
      throw new Error("got");
    },
  }),
  getter_value: () => ({
    get a() {
      return 1;
    },
  }),
  to_json: () => ({ toJSON: () => ({ safe: true }) }),
  to_json_throws: () => ({
    toJSON: () => {
      throw new Error("no");
    },
  }),
  proto: () => JSON.parse('{"__proto__":{"polluted":true}}'),
  proto_deep: () => JSON.parse('{"a":[{"b":{"__proto__":{"polluted":true}}}]}'),
  constructor: () => ({ constructor: { prototype: { polluted: true } } }),
  prototype: () => ({ prototype: { polluted: true } }),
  proto_content: () => ({
    content: [{ type: "text", text: "x", ...JSON.parse('{"__proto__":{"polluted":true}}') }],
  }),
  proxy: () =>
    new Proxy({}, {
      ownKeys: () => ["__proto__", "a"],
      get: () => 1,
      getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }),
    }),
  thenable: () => ({ then: (resolve: (value: unknown) => void) => resolve("then") }),
  map: () => new Map([["a", 1]]),
  date: () => new Date(0),
  bytes: () => new Uint8Array(3),
  surrogate: () => "a\ud800b\u2028c\u0000d",
  error: () => new Error("given, not thrown"),
  content_not_list: () => ({ content: "x" }),
  content_bad_block: () => ({ content: [{ type: 7 }] }),
  content_unknown_block: () => ({ content: [{ type: "hologram", depth: 3 }] }),
  content_text_missing: () => ({ content: [{ type: "text" }] }),
  asks: () => ({ resultType: "input_required", inputRequests: {}, requestState: "x", content: [] }),
  structured_bad: () => ({ content: [], structuredContent: "no object" }),
  is_error_bad: () => ({ content: [], isError: "maybe" }),
  meta_bad: () => ({ content: [], _meta: [] }),
  large: () => "x".repeat(40 * 1024 * 1024),
  items: () => Array.from({ length: 1_000_000 }, (_, at) => at),
  blocks: () => ({
    content: Array.from({ length: 1_000_000 }, () => ({ type: "text", text: "" })),
  }),
  huge: () => Array.from({ length: 600 }, () => "x".repeat(1024 * 1024)),
};

/** Returns one odd thing. */
export function odd({ kind }: { readonly kind: string }): unknown {
  return ODD[kind]?.();
}

const THROWN: Record<string, () => unknown> = {
  range: () => new RangeError("too far"),
  text: () => "just text",
  null: () => null,
  undefined: () => undefined,
  forged: () => Object.assign(new Error("forged"), { code: "PERMISSION_DENIED" }),
  forged_approval: () => Object.assign(new Error("forged"), { code: "APPROVAL_REQUIRED" }),
  getter: () => ({
    get message() {
      throw new Error("no");
    },
  }),
  long: () => new Error("x".repeat(10_000_000)),
  lines: () => new Error("a\n\u001b[2Jb\u202ec"),
  bomb: () => ({ name: { toString: () => "N" }, message: Symbol("x") }),
  cause: () => new Error("outer", { cause: new Error("inner") }),
};

/** Throws one odd thing. */
export function thrown({ kind }: { readonly kind: string }): unknown {
  throw THROWN[kind]?.();
}

/** Tells whether a prototype was changed on this side. */
export function polluted(): string {
  return String(({} as any).polluted);
}
