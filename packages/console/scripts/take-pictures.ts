// Takes the pictures of docs/console: each screen of a server with traffic, light and dark, wide and narrow.
// npm run pictures -w @signalbox/console -- [place …]
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { startChromium } from '@signalbox/testkit/chromium'
import type { Browser, Page } from 'playwright-core'

import { Estate } from '../test/estate.ts'
import type { Server } from '../test/server.ts'

const FOLDER = fileURLToPath(new URL('../../../docs/console/', import.meta.url))

/** The time of traffic before pictures with plots, in ms: they need some steps of 5 s. */
const PLOTTED_MS = 120_000
const PLOTTED: ReadonlySet<string> = new Set(['overview', 'channel', 'agent'])
/** The time of traffic before other pictures, in ms. */
const TRAFFIC_MS = 5_000

const MAX_KIB = 100

const PLACES: Readonly<Record<string, string>> = {
  overview: 'overview?range=hour',
  channels: 'channels',
  channel: 'channels/queues/orders.south',
  message: 'channels/queues/payments.dead?message=1',
  'dead-letters': 'dead-letters?channel=payments.dead&source=payments&reason=max_receive_count',
  live: 'live',
  requests: 'requests',
  agents: 'agents',
  agent: 'agents/translator',
  tasks: 'tasks',
  tools: 'tools/queue_send',
  trace: 'trace',
  audit: 'audit',
  webhooks: 'webhooks',
  security: 'security?client=shop-north&action=send&pattern=queues&channel=secret.plans',
  settings: 'settings',
}

const VIEWS = [
  { scheme: 'light', width: 1440, height: 900 },
  { scheme: 'dark', width: 1440, height: 900 },
  { scheme: 'light', width: 390, height: 844 },
  { scheme: 'dark', width: 390, height: 844 },
] as const

/** The time between two turns of the traffic, in ms. */
const TURN_MS = 150

/** Sends, receives and asks at changing rates until the signal ends it. */
async function keepBusy(server: Server, signal: AbortSignal): Promise<void> {
  for (let turn = 0; !signal.aborted; turn++) {
    const wave = 3 + Math.round(2 * Math.sin(turn / 40))
    for (let number = 0; number < wave; number++) {
      await server.tool('queue_send', {
        channel: 'orders.south',
        body: JSON.stringify({ order: 9_000 + turn * 10 + number, shop: 'south', total: 12.5 + number }),
        tags: { shop: 'south' },
      })
      await server.tool('events_publish', { channel: 'prices.north', body: String(100 + number) })
    }
    await server.tool('queue_receive', { channel: 'orders.south', max_messages: 3, wait_timeout_seconds: 1 })
    const channel = turn % 3 === 0 ? 'orders.west' : 'orders.north'
    await server.tool('queue_send', { channel, body: JSON.stringify({ order: turn }), tags: { shop: 'west' } })
    await server.tool('queue_receive', { channel, max_messages: 2, wait_timeout_seconds: 1 })
    if (turn % 6 === 0) {
      await callAgent(server, turn % 90 === 0 ? 'fail' : 'Translate this contract.')
    }
    if (turn % 120 === 0) await server.tool('query_send', { channel: 'prices.ask', body: '?', timeout_seconds: 1 })
    await new Promise((resolve) => setTimeout(resolve, TURN_MS))
  }
}

async function callAgent(server: Server, text: string): Promise<void> {
  const message = { kind: 'message', role: 'user', messageId: '1', parts: [{ kind: 'text', text }] }
  const response = await fetch(`${server.http}/a2a/translator`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } }),
  })
  await response.arrayBuffer()
}

/** Returns the places whose ids only this server has: a dead letter, which has more to trace than others, and a subscription. */
async function ownPlaces(server: Server): Promise<Readonly<Record<string, string>>> {
  const { messages } = await server.act('peek_queue_messages', { channel: 'payments.dead', max_messages: 1 })
  const letter = /"id":"([^"]+)"/.exec(JSON.stringify(messages))?.[1] ?? ''
  const webhooks = await (await fetch(`${server.api}/api/webhooks`)).text()
  const webhook = /"id":"([^"]+)"/.exec(webhooks)?.[1] ?? ''
  return { trace: `trace?id=${letter}`, webhooks: `webhooks/${webhook}` }
}

/** Takes the pictures of a screen that is open, and returns the number of bytes. */
async function take(page: Page, encoder: Page, file: string): Promise<number> {
  const png = await page.screenshot()
  // Chromium writes WebP only from a canvas. It needs a third of the bytes.
  const webp = await encoder.evaluate(
    async (source: string) => {
      const image = new Image()
      image.src = source
      await image.decode()
      const canvas = document.createElement('canvas')
      canvas.width = image.width
      canvas.height = image.height
      canvas.getContext('2d')?.drawImage(image, 0, 0)
      return canvas.toDataURL('image/webp', 0.86)
    },
    `data:image/png;base64,${png.toString('base64')}`,
  )
  const bytes = Buffer.from(webp.slice(webp.indexOf(',') + 1), 'base64')
  writeFileSync(file, bytes)
  return bytes.length
}

/** Takes the pictures of the places in all views. */
async function takeAll(
  browser: Browser,
  server: Server,
  places: readonly (readonly [string, string])[],
): Promise<void> {
  const own = await ownPlaces(server)
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
      await page.goto(`${server.console}#/${own[name] ?? place}`)
      await page.reload()
      await page.getByRole('heading', { level: 1 }).waitFor()
      // Time for plots, and for messages to pass in the live tail.
      await page.waitForTimeout(name === 'live' ? 4_000 : 1_500)
      const file = `${name}-${scheme}-${width}.webp`
      const kib = (await take(page, encoder, `${FOLDER}${file}`)) / 1_024
      process.stdout.write(`${file}: ${kib.toFixed(0)} KiB\n`)
      if (kib > MAX_KIB) process.exitCode = 1
    }
    await context.close()
  }
}

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => PLACES[name] === undefined)
if (unknown.length > 0)
  throw new Error(`no such picture: ${unknown.join(', ')}; there are: ${Object.keys(PLACES).join(', ')}`)
const places = Object.entries(PLACES).filter(([name]) => asked.length === 0 || asked.includes(name))
mkdirSync(FOLDER, { recursive: true })
await using estate = await Estate.start()
const ended = new AbortController()
const traffic = keepBusy(estate.server, ended.signal)
const browser = await startChromium()
try {
  const ms = places.some(([name]) => PLOTTED.has(name)) ? PLOTTED_MS : TRAFFIC_MS
  process.stdout.write(`${ms / 1_000} s of traffic\n`)
  await new Promise((resolve) => setTimeout(resolve, ms))
  await takeAll(browser, estate.server, places)
} finally {
  ended.abort()
  await browser.close()
  await traffic
}
