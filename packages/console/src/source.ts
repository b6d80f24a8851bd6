import { buildPage } from './build-page.ts'

/** Returns the folder of the page, built if its sources changed: the entry of a server that runs from TypeScript source. */
export async function consolePage(): Promise<string> {
  return buildPage()
}
