/**
 * Loads the call path with all files that a first call of a program needs. An `import()` takes longer
 * the more files Deno has loaded, up to 4 ms each, so one `import()` loads all of them.
 *
 * @module
 */

import "../calls/schemas.ts";
import "../policy/pins.ts";
import "../servers/cloud/rpc.ts";
import "../servers/cloud/runtime.ts";
import "../servers/http/runtime.ts";
import "../servers/lists/list_code.ts";
import "../servers/sources/finders.ts";
import "../servers/stdio/runtime.ts";
import "../servers/stdio/stdio_wire.ts";

export { openCallPath } from "./app_call_path.ts";
