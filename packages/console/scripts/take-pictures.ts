// Takes the pictures of docs/console: each screen of `signalbox demo`, light and dark, wide and narrow.
// npm run pictures -w @signalbox/console -- [place …]
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

import { startChromium } from '@signalbox/testkit/chromium'
import type { Browser, Page } from 'playwright-core'

import { startTask } from '../test/estate.ts'
import { ShopCluster } from '../test/shop-cluster.ts'

const START = fileURLToPath(new URL('../../../apps/server/scripts/start.js', import.meta.url))
const HOST_NAME = new URL('../test/host-name.ts', import.meta.url).href
const FOLDER = fileURLToPath(new URL('../../../docs/console/', import.meta.url))

/** The time of traffic before pictures with plots, in ms: they need some steps of 5 s. */
const PLOTTED_MS = 120_000
const PLOTTED: ReadonlySet<string> = new Set([
  'overview',
  'channels',
  'channel',
  'requests',
  'agents',
  'agent',
  'tasks',
  'map',
])
/** The time of traffic before other pictures, in ms: a stream has some events by then. */
const TRAFFIC_MS = 20_000

/** The time before a picture, in ms, where it is not the usual one. */
const WAIT_MS: Readonly<Record<string, number>> = { live: 4_000, stream: 500 }

const MAX_BYTES = 100 * 1_024
/** Of pictures, the best first. The next one is for a picture with too many bytes. */
const QUALITIES = [0.86, 0.78, 0.7, 0.6] as const
/** The lowest pictures, in pixels: a wide one shows the navigation as a whole. */
const MIN_HEIGHT = 600
const MIN_NARROW_HEIGHT = 400
/** The head of a narrow page and the margins. */
const HEAD_PX = 72

const PLACES: Readonly<Record<string, string>> = {
  overview: 'overview?range=hour',
  channels: 'channels',
  channel: 'channels/queues/prints',
  message: 'channels/queues/prints.dead',
  'dead-letters': 'dead-letters?channel=prints.dead&source=prints&reason=rejected',
  map: 'map?window=hour',
  live: 'live',
  requests: 'requests',
  agents: 'agents',
  agent: 'agents/translator',
  tasks: 'tasks?show=all',
  stream: 'tasks',
  tools: 'tools/queue_send',
  trace: 'trace',
  audit: 'audit',
  webhooks: 'webhooks',
  security: 'security?client=customer-1&action=send&pattern=queues&channel=prints',
  settings: 'settings',
  nodes: 'overview',
}

/** Of a cluster; the others are of a server that is alone. */
const NODES = 'nodes'

const VIEWS = [
  { scheme: 'light', width: 1440, height: 900 },
  { scheme: 'dark', width: 1440, height: 900 },
  { scheme: 'light', width: 390, height: 844 },
  { scheme: 'dark', width: 390, height: 844 },
] as const

type Places = readonly (readonly [name: string, place: string])[]

/** Runs an action of the management API, and returns its answer. */
async function act(api: string, action: string, body: object): Promise<string> {
  const response = await fetch(`${api}/api/actions/${action}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return response.text()
}

/** Returns the places whose ids only this demo has: a dead letter, which has more to trace than others, and a subscription. */
async function ownPlaces(api: string): Promise<Readonly<Record<string, string>>> {
  const letters = await act(api, 'peek_queue_messages', { channel: 'prints.dead', max_messages: 1 })
  const webhooks = await (await fetch(`${api}/api/webhooks`)).text()
  const sequence = /"sequence":(\d+)/.exec(letters)?.[1] ?? ''
  return {
    message: `${PLACES['message']}?message=${sequence}`,
    trace: `trace?id=${firstId(letters)}`,
    webhooks: `webhooks/${firstId(webhooks)}`,
  }
}

function firstId(text: string): string {
  return /"id":"([^"]+)"/.exec(text)?.[1] ?? ''
}

/** Takes the picture of a screen that is open, and returns the number of bytes. */
async function take(page: Page, encoder: Page, file: string): Promise<number> {
  const png = await page.screenshot()
  for (const quality of QUALITIES) {
    // Chromium writes WebP only from a canvas. It needs a third of the bytes.
    const webp = await encoder.evaluate(
      async ([source, value]) => {
        const image = new Image()
        image.src = source
        await image.decode()
        const canvas = document.createElement('canvas')
        canvas.width = image.width
        canvas.height = image.height
        canvas.getContext('2d')?.drawImage(image, 0, 0)
        return canvas.toDataURL('image/webp', value)
      },
      [`data:image/png;base64,${png.toString('base64')}`, quality] as const,
    )
    const bytes = Buffer.from(webp.slice(webp.indexOf(',') + 1), 'base64')
    if (bytes.length > MAX_BYTES && quality !== QUALITIES.at(-1)) continue
    writeFileSync(file, bytes)
    return bytes.length
  }
  throw new Error('there is no quality')
}

/** Makes the window as high as its content, within bounds: a short list leaves no empty half. */
async function fit(page: Page, width: number, height: number): Promise<void> {
  const content = await page.evaluate(() => {
    const parts = [...document.querySelectorAll('main .page, dialog[open]')]
    return Math.max(...parts.map((part) => part.getBoundingClientRect().height))
  })
  const least = width < 768 ? MIN_NARROW_HEIGHT : MIN_HEIGHT
  await page.setViewportSize({ width, height: Math.round(Math.min(height, Math.max(least, content + HEAD_PX))) })
  await page.waitForTimeout(300)
}

/** Returns the place of a stream that has just opened: it ends within seconds. */
async function newStream(api: string): Promise<string> {
  const read = async (): Promise<readonly string[]> => {
    const text = await (await fetch(`${api}/api/streams`)).text()
    return [...text.matchAll(/"id":"([^"]+)"/g)].map(([, id = '']) => id)
  }
  const known = new Set(await read())
  for (;;) {
    const id = (await read()).find((one) => !known.has(one))
    if (id !== undefined) return `tasks/streams/${id}`
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Takes the pictures of the places in all views. */
async function takeAll(browser: Browser, api: string, places: Places): Promise<void> {
  const encoder = await (await browser.newContext()).newPage()
  for (const { scheme, width, height } of VIEWS) {
    const context = await browser.newContext({
      colorScheme: scheme,
      viewport: { width, height },
      locale: 'en-GB',
      reducedMotion: 'reduce',
    })
    const page = await context.newPage()
    for (const [name, place] of places) {
      await page.setViewportSize({ width, height })
      await page.goto(`${api}/console/#/${name === 'stream' ? await newStream(api) : place}`)
      await page.reload()
      await page.getByRole('heading', { level: 1 }).waitFor()
      // Time for plots, and for messages to pass in the live tail.
      await page.waitForTimeout(WAIT_MS[name] ?? 1_500)
      if (name === NODES) {
        const nodes = page.getByRole('table', { name: 'Nodes' })
        await nodes.getByText('broker-3').waitFor()
        await nodes.evaluate((table) => table.scrollIntoView({ block: 'end' }))
        await page.mouse.wheel(0, height)
        await page.waitForTimeout(300)
      } else await fit(page, width, height)
      const file = `${name}-${scheme}-${width}.webp`
      const bytes = await take(page, encoder, `${FOLDER}${file}`)
      process.stdout.write(`${file}: ${(bytes / 1_024).toFixed(0)} KiB\n`)
      if (bytes > MAX_BYTES) process.exitCode = 1
    }
    await context.close()
  }
}

async function takeDemo(browser: Browser, places: Places): Promise<void> {
  const demo = spawn(
    process.execPath,
    ['--conditions=@signalbox/source', `--import=${HOST_NAME}`, START, 'demo', '--port=0', '--console-port=0'],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, PICTURED_HOST: 'broker-1' } },
  )
  try {
    let guide = ''
    await new Promise<void>((resolve, reject) => {
      demo.once('exit', () => reject(new Error('the demo did not start')))
      demo.stdout.setEncoding('utf8').on('data', (text: string) => {
        guide += text
        if (guide.includes('Ctrl-C')) resolve()
      })
    })
    const [, http = '', api = '', token = ''] =
      /_URL=(\S+) SIGNALBOX_API_URL=(\S+) SIGNALBOX_TOKEN=(\S+)/.exec(guide) ?? []
    const ms = places.some(([name]) => PLOTTED.has(name)) ? PLOTTED_MS : TRAFFIC_MS
    process.stdout.write(`${ms / 1_000} s of traffic\n`)
    // For the screen Tasks: calls of a model while the proofreader is away.
    await new Promise((resolve) => setTimeout(resolve, ms / 2))
    const headers = { authorization: `Bearer ${token}` }
    for (let call = 0; call < 3; call++) await startTask(http, { agent: 'proofreader', headers })
    await new Promise((resolve) => setTimeout(resolve, ms / 2))
    // For the screen Audit: actions of an operator.
    await act(api, 'redrive_dead_letters', { channel: 'prints.dead', source: 'prints', max_messages: 1 })
    await act(api, 'pause_queue', { channel: 'prints', seconds: 5, reason: 'new paper' })
    const own = await ownPlaces(api)
    await takeAll(
      browser,
      api,
      places.map(([name, place]) => [name, own[name] ?? place] as const),
    )
  } finally {
    const isOver = demo.exitCode !== null || demo.signalCode !== null
    const ended = isOver || once(demo, 'exit')
    demo.kill('SIGINT')
    await ended
  }
}

async function takeNodes(browser: Browser, places: Places): Promise<void> {
  await using cluster = await ShopCluster.start()
  process.stdout.write(`${PLOTTED_MS / 1_000} s of traffic of a cluster\n`)
  await new Promise((resolve) => setTimeout(resolve, PLOTTED_MS))
  await takeAll(browser, cluster.server.api, places)
}

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => PLACES[name] === undefined)
if (unknown.length > 0)
  throw new Error(`no such picture: ${unknown.join(', ')}; there are: ${Object.keys(PLACES).join(', ')}`)
const places = Object.entries(PLACES).filter(([name]) => asked.length === 0 || asked.includes(name))
mkdirSync(FOLDER, { recursive: true })
const browser = await startChromium()
try {
  const alone = places.filter(([name]) => name !== NODES)
  const clustered = places.filter(([name]) => name === NODES)
  if (alone.length > 0) await takeDemo(browser, alone)
  if (clustered.length > 0) await takeNodes(browser, clustered)
} finally {
  await browser.close()
}
