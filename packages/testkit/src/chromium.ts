import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

import { chromium } from 'playwright-core'
import type { Browser } from 'playwright-core'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

function findChromium({ CHROMIUM, PATH = '' }: NodeJS.ProcessEnv = process.env): string | undefined {
  if (CHROMIUM !== undefined && CHROMIUM !== '') return CHROMIUM
  return PATH.split(delimiter)
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

const executablePath = findChromium()

/** `true` if a Chromium is installed, or `CHROMIUM` names one. Tests that need it are skipped otherwise. */
export const hasChromium = executablePath !== undefined
if (!hasChromium) {
  process.stderr.write('browser tests are skipped: no Chromium; apt-get install -y --no-install-recommends chromium\n')
}

/**
 * Starts the installed Chromium without a window.
 * @param hosts Names that only this browser resolves, to 127.0.0.1
 */
export async function startChromium(hosts: readonly string[] = []): Promise<Browser> {
  if (executablePath === undefined) throw new Error('no Chromium is installed')
  return chromium.launch({
    executablePath,
    args: [
      // The sandbox of Chromium does not run as root, the user of tests in containers. The pages are ours.
      '--no-sandbox',
      '--disable-dev-shm-usage',
      '--no-proxy-server',
      ...(hosts.length === 0
        ? []
        : [`--host-resolver-rules=${hosts.map((host) => `MAP ${host} 127.0.0.1`).join(',')}`]),
    ],
  })
}
