import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { createRequire, stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'

import { hasChromium, startChromium } from '@signalbox/testkit/chromium'
import { testServer } from '@signalbox/testkit/test-server'
import { expect, test } from 'vitest'

import { PROGRAM, RESULT } from './every-runtime.ts'
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
  const server = await testServer(({ url = '/' }, response) => {
    answer(url, response).catch(() => response.writeHead(404).end())
  })
  return `http://localhost:${server.port}/`
}

/** The program of the page. */
const PAGE_PROGRAM = `async (url) => (${PROGRAM})((await import('/client/index.ts')).connect, url)`

test.skipIf(!hasChromium)(
  'browser - a page of another origin works on a queue, reads events, answers and asks',
  async () => {
    await using server = await TestServer.start()
    await using browser = await startChromium()
    const page = await browser.newPage()
    await page.goto(await servePage())
    expect(await page.evaluate(`(${PAGE_PROGRAM})(${JSON.stringify(server.url)})`)).toEqual(RESULT)
  },
  90_000,
)
