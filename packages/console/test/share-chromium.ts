import { hasChromium, serveChromium } from '@signalbox/testkit/chromium'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** The address of the Chromium that all test files share; undefined if each starts its own. */
    chromium: string | undefined
  }
}

/** Starts one Chromium for the test files of all workers: each start costs more than a second of CPU time. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (!hasChromium) return undefined
  const browser = await serveChromium()
  project.provide('chromium', browser.wsEndpoint())
  return () => browser.close()
}
