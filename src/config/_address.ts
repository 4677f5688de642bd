/**
 * Decides which URLs a person may write in a configuration.
 *
 * @module
 */

const THIS_MACHINE = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/**
 * Returns whether a text is a URL without a user name or password that begins with one of these
 * texts or leads to this machine.
 */
export function isAddress(text: string, beginnings: readonly string[]): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "") return false;
  return beginnings.includes(`${url.protocol}//`) ||
    /^(mcp\+)?http:$/.test(url.protocol) && THIS_MACHINE.test(url.hostname);
}
