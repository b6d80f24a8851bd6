import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'

import { connectChromium, hasChromium, startChromium } from '@signalbox/testkit/chromium'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { expect, inject, onTestFinished } from 'vitest'

/** `false` skips the tests of the page. */
export const hasBrowser = hasChromium

let browser: Promise<Browser> | undefined

async function openBrowser(): Promise<Browser> {
  const shared = inject('chromium')
  return shared === undefined ? startChromium() : connectChromium(shared)
}

/** Closes the browser of this file's tests, or the connection to one that they share. */
export async function closeBrowser(): Promise<void> {
  await (await browser)?.close()
  browser = undefined
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

/** Opens a page that is watched. It closes when the test ends. */
export async function openPage(url: string, options: OpenOptions = {}): Promise<Watched> {
  const { scheme = 'light', width = 1440, height = 900 } = options
  browser ??= openBrowser()
  const context = await (
    await browser
  ).newContext({
    colorScheme: scheme,
    viewport: { width, height },
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    reducedMotion: 'reduce',
  })
  onTestFinished(() => context.close())
  const page = await context.newPage()
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
  return { page, context, problems, foreign }
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
