/**
 * Private files for those who keep what the person approved elsewhere than here.
 *
 * @module
 */

export {
  keep,
  locked,
  readKept,
  readPlain,
  removeLeftovers,
  unlessGone,
  writeWhole,
} from "./_store.ts";
