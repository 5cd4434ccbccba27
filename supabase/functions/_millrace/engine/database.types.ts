// The types of the functions that the engine serves by the Data API, written by `npm run check -- --write` from the
// migrated database.

export type Json = string | number | boolean | null | { [key: string]: Json | undefined } | Json[];

export type EngineFunctions = {};
