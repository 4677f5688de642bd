/**
 * Which addresses a person may write down.
 *
 * @module
 */

const THIS_MACHINE = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** Tells whether a text is a URL that begins so, or one of this machine, and names no user. */
export function isAddress(text: string, beginnings: readonly string[]): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "") return false;
  return beginnings.includes(`${url.protocol}//`) ||
    /^(mcp\+)?http:$/.test(url.protocol) && THIS_MACHINE.test(url.hostname);
}
