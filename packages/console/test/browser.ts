import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'

import { connectChromium, hasChromium, startChromium } from '@signalbox/testkit/chromium'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, inject, onTestFinished } from 'vitest'

/** `false` skips the tests of the page. */
export const hasBrowser = hasChromium

const shared = inject('chromium')

/** The time for each step of a test, on a machine that does other work. */
const WAIT_MS = 90_000

let context: Promise<BrowserContext> | undefined

/** Pages that no test uses: to load the next place costs half of what a new page with its process costs. */
const idle: Page[] = []

async function openContext(): Promise<BrowserContext> {
  const browser: Browser = shared === undefined ? await startChromium() : await connectChromium(shared)
  const opened = await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin', reducedMotion: 'reduce' })
  // No test is about the time that a page takes, unless it measures it.
  opened.setDefaultTimeout(WAIT_MS)
  return opened
}

/** The time in which the servers of a file start while other tests share the processors. */
const START_MS = 300_000

/** Opens what the tests of a file use, if there is a browser, and disposes of it after the last one. */
export function beforeScreens(open: (held: AsyncDisposableStack) => Promise<void>): void {
  const held = new AsyncDisposableStack()
  beforeAll(async () => {
    if (hasBrowser) await open(held)
  }, START_MS)
  afterAll(async () => {
    await closeBrowser()
    await held.disposeAsync()
  })
}

/** Closes the browser of this file's tests, unless other files use it. */
async function closeBrowser(): Promise<void> {
  if (shared !== undefined) return
  await (await context)?.browser()?.close()
  context = undefined
  idle.length = 0
}

export interface OpenOptions {
  readonly scheme?: 'light' | 'dark'
  readonly width?: number
  readonly height?: number
}

/** What a page did that it must not do. Empty after every test. */
export interface Watched {
  readonly page: Page
  readonly context: BrowserContext
  /** Errors of scripts, refusals by the security policy, and errors in the console. */
  readonly problems: string[]
  /** Requests to another origin. */
  readonly foreign: string[]
}

/** Opens a page that is watched. The test has it to its end. */
export async function openPage(url: string, options: OpenOptions = {}): Promise<Watched> {
  const { scheme = 'light', width = 1440, height = 900 } = options
  context ??= openContext()
  const page = idle.pop() ?? (await (await context).newPage())
  onTestFinished(() => release(page))
  await page.setViewportSize({ width, height })
  await page.emulateMedia({ colorScheme: scheme })
  const problems: string[] = []
  const foreign: string[] = []
  const { origin } = new URL(url)
  page.on('pageerror', (error) => problems.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error' || message.text().includes('Content Security Policy')) problems.push(message.text())
  })
  page.on('request', (request) => {
    const asked = request.url()
    if (asked !== origin && !asked.startsWith(`${origin}/`)) foreign.push(asked)
  })
  page.on('websocket', (socket) => {
    if (!socket.url().startsWith(`${origin.replace('http', 'ws')}/`)) foreign.push(socket.url())
  })
  await page.goto(url)
  await page.getByRole('heading', { level: 1 }).waitFor()
  return { page, context: page.context(), problems, foreign }
}

/** Goes to a screen by its keys. They are one call, because the letter counts for 1.5 s after `g` only. */
export async function goTo(page: Page, key: string): Promise<void> {
  await page.keyboard.type(`g${key}`)
}

/** Leaves nothing of a test in the page, and keeps it for the next one. */
async function release(page: Page): Promise<void> {
  page.removeAllListeners()
  try {
    await page.evaluate(() => {
      sessionStorage.clear()
      localStorage.clear()
      // A navigation that the driver begins would need another process.
      location.replace('about:blank')
    })
    await page.waitForURL('about:blank')
    idle.push(page)
  } catch {
    await page.close()
  }
}

/** Fails if the page had an error, a refusal of the security policy, or a request to another origin. */
export function expectQuiet({ problems, foreign }: Watched): void {
  expect({ problems, foreign }).toEqual({ problems: [], foreign: [] })
}

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

interface AxeResults {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
  }[]
}

/** `colors`: for a theme of a page that has no violation in another theme. @default all */
type Rules = 'all' | 'colors'

/** Options that leave out work whose results are not in a report here: half of the time. */
const FAST = "resultTypes: ['violations'], selectors: false, preload: false, iframes: false"

const RUN_ONLY: Readonly<Record<Rules, string>> = {
  all: "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']",
  colors: "{ type: 'rule', values: ['color-contrast', 'link-in-text-block'] }",
}

/** Returns the violations of WCAG 2.2 AA that axe-core finds, one line each. */
export async function violationsOf(page: Page, rules: Rules = 'all'): Promise<readonly string[]> {
  // The driver's own world is not bound by the security policy of the page.
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(await readAxe())
  const { violations }: AxeResults = await page.evaluate(`axe.run(document, { runOnly: ${RUN_ONLY[rules]}, ${FAST} })`)
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  )
}

let axe: Promise<string> | undefined

async function readAxe(): Promise<string> {
  return (axe ??= readFile(AXE, 'utf8'))
}
