import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

import { chromium } from 'playwright-core'
import type { Browser, BrowserServer, LaunchOptions } from 'playwright-core'

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
  return chromium.launch(launchOptions(hosts))
}

/** Starts a Chromium for several processes: each connects to its `wsEndpoint()` with {@link connectChromium}. */
export async function serveChromium(): Promise<BrowserServer> {
  return chromium.launchServer({ ...launchOptions([]), host: '127.0.0.1' })
}

/** Returns the Chromium of another process. To close it ends the connection and the contexts that were opened through it. */
export async function connectChromium(endpoint: string): Promise<Browser> {
  return chromium.connect(endpoint)
}

function launchOptions(hosts: readonly string[]): LaunchOptions {
  if (executablePath === undefined) throw new Error('no Chromium is installed')
  return {
    executablePath,
    args: [
      // The sandbox of Chromium does not run as root, the user of tests in containers. The pages are ours.
      '--no-sandbox',
      '--disable-dev-shm-usage',
      '--no-proxy-server',
      // Otherwise each navigation starts a process in advance for the next one.
      '--disable-site-isolation-trials',
      ...(hosts.length === 0
        ? []
        : [`--host-resolver-rules=${hosts.map((host) => `MAP ${host} 127.0.0.1`).join(',')}`]),
    ],
  }
}
