// Takes the pictures of docs/console: each screen of a server with traffic, light and dark, wide and narrow.
// npm run pictures -w @signalbox/console -- [place …]
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { startChromium } from '@signalbox/testkit/chromium'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import type { Browser, Page } from 'playwright-core'

import type { Server } from '../test/server.ts'
import { ShopCluster } from '../test/shop-cluster.ts'
import { Shop } from '../test/shop.ts'
import { SECRET, tokenOf } from '../test/tokens.ts'

const FOLDER = fileURLToPath(new URL('../../../docs/console/', import.meta.url))

/** The time of traffic before pictures with plots, in ms: they need some steps of 5 s. */
const PLOTTED_MS = 120_000
const PLOTTED: ReadonlySet<string> = new Set(['overview', 'channels', 'channel', 'requests', 'agents', 'agent'])
/** The time of traffic before other pictures, in ms: a stream has some events by then. */
const TRAFFIC_MS = 20_000

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
  channel: 'channels/queues/orders.south',
  message: 'channels/queues/payments.dead?message=1',
  'dead-letters': 'dead-letters?channel=payments.dead&source=payments&reason=max_receive_count',
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
  security: 'security?client=shop-north&action=send&pattern=queues&channel=secret.plans',
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

/** Returns the places whose ids only this server has: a dead letter, which has more to trace than others, a stream and a subscription. */
async function ownPlaces(server: Server): Promise<Readonly<Record<string, string>>> {
  const { messages } = await server.act('peek_queue_messages', { channel: 'payments.dead', max_messages: 1 }, 'anna')
  const letter = /"id":"([^"]+)"/.exec(JSON.stringify(messages))?.[1] ?? ''
  const idOf = async (list: string, pattern: RegExp): Promise<string> => {
    const response = await fetch(`${server.api}/api/${list}`, { headers: server.operatorHeaders('anna') })
    return pattern.exec(await response.text())?.[1] ?? ''
  }
  const webhook = await idOf('webhooks', /"id":"([^"]+)"/)
  const stream = await idOf('streams', /"id":"([^"]+)","agent_id":"[^"]+","client":"back-office"/)
  return { trace: `trace?id=${letter}`, webhooks: `webhooks/${webhook}`, stream: `tasks/streams/${stream}` }
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

/** Takes the pictures of the places in all views. */
async function takeAll(browser: Browser, server: Server, places: Places): Promise<void> {
  const encoder = await (await browser.newContext()).newPage()
  for (const { scheme, width, height } of VIEWS) {
    const context = await browser.newContext({
      colorScheme: scheme,
      viewport: { width, height },
      locale: 'en-GB',
      reducedMotion: 'reduce',
    })
    const token = tokenOf(SECRET, ['Admin'], 3_600, 'anna')
    await context.addInitScript((text) => sessionStorage.setItem('signalbox.token', text), token)
    const page = await context.newPage()
    for (const [name, place] of places) {
      await page.setViewportSize({ width, height })
      await page.goto(`${server.console}#/${place}`)
      await page.reload()
      await page.getByRole('heading', { level: 1 }).waitFor()
      // Time for plots, and for messages to pass in the live tail.
      await page.waitForTimeout(name === 'live' ? 4_000 : 1_500)
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

async function takeShop(browser: Browser, places: Places): Promise<void> {
  await using folder = await TemporaryFolder.create('shop')
  // The page shows paths of settings relative to it.
  process.chdir(folder.path)
  await using shop = await Shop.open(folder)
  const ms = places.some(([name]) => PLOTTED.has(name)) ? PLOTTED_MS : TRAFFIC_MS
  process.stdout.write(`${ms / 1_000} s of traffic\n`)
  await new Promise((resolve) => setTimeout(resolve, ms))
  const own = await ownPlaces(shop.server)
  await takeAll(
    browser,
    shop.server,
    places.map(([name, place]) => [name, own[name] ?? place] as const),
  )
}

async function takeNodes(browser: Browser, places: Places): Promise<void> {
  await using cluster = await ShopCluster.start()
  process.stdout.write(`${PLOTTED_MS / 1_000} s of traffic of a cluster\n`)
  await new Promise((resolve) => setTimeout(resolve, PLOTTED_MS))
  await takeAll(browser, cluster.server, places)
}

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => PLACES[name] === undefined)
if (unknown.length > 0)
  throw new Error(`no such picture: ${unknown.join(', ')}; there are: ${Object.keys(PLACES).join(', ')}`)
const places = Object.entries(PLACES).filter(([name]) => asked.length === 0 || asked.includes(name))
mkdirSync(FOLDER, { recursive: true })
process.env['PICTURED_HOST'] = 'broker-1'
const browser = await startChromium()
try {
  const alone = places.filter(([name]) => name !== NODES)
  const clustered = places.filter(([name]) => name === NODES)
  if (alone.length > 0) await takeShop(browser, alone)
  if (clustered.length > 0) await takeNodes(browser, clustered)
} finally {
  await browser.close()
}
