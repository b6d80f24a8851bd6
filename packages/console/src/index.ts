import { fileURLToPath } from 'node:url'

/** Returns the folder of the built page, for the option `console` of the management API. */
export async function consolePage(): Promise<string> {
  return fileURLToPath(new URL('./page/', import.meta.url))
}
