/**
 * The entry of the child of the embedding model. It may read the library and the model, and nothing
 * else: no network, no environment, no other file.
 *
 * @module
 */

import { embedder } from "./embedder.ts";

await embedder();
