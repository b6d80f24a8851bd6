// Takes the pictures of docs/console: each screen of a server with traffic, light and dark, wide and narrow.
// npm run pictures -w @signalbox/console -- [place …]
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { chromium } from 'playwright-core'

import { Estate } from '../test/estate.ts'
import type { Server } from '../test/server.ts'

const FOLDER = fileURLToPath(new URL('../../../docs/console/', import.meta.url))

/** The time of traffic before the pictures, in ms: plots need some steps of 5 s. */
const TRAFFIC_MS = 180_000

const PLACES: Readonly<Record<string, string>> = {
  overview: 'overview?range=hour',
  channels: 'channels',
  channel: 'channels/queues/orders.south',
  message: 'channels/queues/orders.south?message=1',
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
      const message = turn % 90 === 0 ? 'fail' : 'Translate this contract.'
      await server.tool('agent_send', { agent_id: 'translator', message })
    }
    if (turn % 120 === 0) await server.tool('query_send', { channel: 'prices.ask', body: '?', timeout_seconds: 1 })
    await new Promise((resolve) => setTimeout(resolve, TURN_MS))
  }
}

/** Returns the id of a dead letter, which has more to trace than others. */
async function deadLetter(server: Server): Promise<string> {
  const { messages } = await server.act('peek_queue_messages', { channel: 'payments.dead', max_messages: 1 })
  return /"id":"([^"]+)"/.exec(JSON.stringify(messages))?.[1] ?? ''
}

const asked = process.argv.slice(2)
const places = Object.entries(PLACES).filter(([name]) => asked.length === 0 || asked.includes(name))
mkdirSync(FOLDER, { recursive: true })
await using estate = await Estate.start()
const { server } = estate
const letter = await deadLetter(server)
const ended = new AbortController()
const traffic = keepBusy(server, ended.signal)
await new Promise((resolve) => setTimeout(resolve, TRAFFIC_MS))
const browser = await chromium.launch({
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-dev-shm-usage'],
})
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
    await page.goto(`${server.console}#/${name === 'trace' ? `trace?id=${letter}` : place}`)
    await page.reload()
    await page.getByRole('heading', { level: 1 }).waitFor()
    // Time for plots, and for messages to pass in the live tail.
    await page.waitForTimeout(name === 'live' ? 4_000 : 1_500)
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
    writeFileSync(`${FOLDER}${name}-${scheme}-${width}.webp`, Buffer.from(webp.slice(webp.indexOf(',') + 1), 'base64'))
  }
  await context.close()
}
ended.abort()
await traffic
await browser.close()
