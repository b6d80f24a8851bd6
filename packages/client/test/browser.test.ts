import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { createRequire, stripTypeScriptTypes } from 'node:module'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'

import { hasChromium, startChromium } from '@signalbox/testkit/chromium'
import { expect, onTestFinished, test } from 'vitest'

import { TestServer } from './server.ts'

const PARSER = dirname(createRequire(import.meta.url).resolve('eventsource-parser'))

/** A page that loads the modules of the client as they are, without a bundler. */
const PAGE = `<!doctype html><meta charset="utf-8"><title>a shop</title>
<script type="importmap">{ "imports": { "eventsource-parser": "/parser/index.js" } }</script>`

/** The folders of modules, by the first part of their path. */
const FOLDERS: Readonly<Record<string, string>> = { client: join(import.meta.dirname, '../src'), parser: PARSER }

async function answer(path: string, response: ServerResponse): Promise<void> {
  const [, folder = '', ...rest] = path.split('/')
  const root = FOLDERS[folder]
  if (root === undefined) {
    response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE)
    return
  }
  const source = await readFile(join(root, ...rest), 'utf8')
  response.writeHead(200, { 'content-type': 'text/javascript' })
  response.end(path.endsWith('.ts') ? stripTypeScriptTypes(source, { mode: 'transform' }) : source)
}

/** Serves the page on localhost, and returns its URL. */
async function servePage(): Promise<string> {
  const server = createServer(({ url = '/' }, response) => {
    answer(url, response).catch(() => response.writeHead(404).end())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://localhost:${(server.address() as AddressInfo).port}/`
}

/** The program of the page. Works on a queue, reads live and stored events, answers and asks. */
const PROGRAM = `async (url) => {
  const { connect } = await import('/client/index.ts')
  const sb = connect(url)
  const jobs = sb.queue('jobs')
  const sent = [await jobs.send({ n: 1 }, { id: 'a' }), await jobs.send({ n: 1 }, { id: 'a' })]
  const done = []
  const pool = jobs.work({ concurrency: 2, lease: '5s', backoff: () => '1s' }, async (job, { receives }) => {
    if (receives === 1) throw new Error('the first receive fails')
    done.push(job)
  })
  const live = []
  await sb.events('shop.*').on(({ data }) => live.push(data)).ready
  await sb.events('shop.eu').publish('hello')
  await sb.answer('queries', 'prices', ({ sku }) => ({ sku, price: 9.5 })).ready
  const price = await sb.query('prices', { sku: 'a1' }, { timeout: '5s' })
  const log = sb.store('log')
  await log.append(new Uint8Array([0, 255]))
  await log.append({ total: 12 })
  const stored = []
  for await (const { data } of log.read({ from: 'first' })) stored.push(data instanceof Uint8Array ? [...data] : data)
  const failure = await sb.queue('_AGENTS_.x').send(1).catch((error) => error.code)
  while (done.length === 0 || live.length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
  await pool.drain()
  await sb.close()
  return { duplicates: sent.map(({ duplicate }) => duplicate), done, live, price, stored, failure }
}`

test.skipIf(!hasChromium)(
  'browser - a page of another origin works on a queue, reads events, answers and asks',
  async () => {
    await using server = await TestServer.start()
    await using browser = await startChromium()
    const page = await browser.newPage()
    await page.goto(await servePage())
    expect(await page.evaluate(`(${PROGRAM})(${JSON.stringify(server.url)})`)).toEqual({
      duplicates: [false, true],
      done: [{ n: 1 }],
      live: ['hello'],
      price: { sku: 'a1', price: 9.5 },
      stored: [[0, 255], { total: 12 }],
      failure: 'CHANNEL_RESERVED',
    })
  },
)
