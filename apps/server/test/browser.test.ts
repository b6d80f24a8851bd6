import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { hasChromium, startChromium } from '@signalbox/testkit/chromium'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { listed, register } from './support/agent.ts'
import { Page, servePage } from './support/browser.ts'
import { callTool } from './support/mcp.ts'
import { serve } from './support/server.ts'

const EVIL = 'evil.test'
const BLANK = '<!doctype html><meta charset="utf-8"><title>a page</title>'

let browser: Browser
beforeAll(async () => {
  if (hasChromium) browser = await startChromium([EVIL])
}, 60_000)
afterAll(async () => {
  if (hasChromium) await browser.close()
})

/** A page of this host, at an origin of its own. */
async function openPage(host: string, html = BLANK): Promise<Page> {
  return Page.open(browser, `http://${host}:${await servePage(html)}/`)
}

/** A script that calls and says what it could read: status and body, or that it could read nothing. */
function fetching(url: string, init: object = {}): string {
  return `try {
    const response = await fetch(${JSON.stringify(url)}, ${JSON.stringify(init)})
    return { type: response.type, status: response.status, text: await response.text() }
  } catch (error) {
    return String(error)
  }`
}

const UNREADABLE = 'TypeError: Failed to fetch'

function toolCall(name: string, args: object): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } })
}

const SEND = toolCall('queue_send', { channel: 'orders', body: 'from a page' })
const AS_JSON = { 'content-type': 'application/json' }

/** The messages in the queue, as nobody but a page can have put them there. */
async function orders(base: string): Promise<unknown> {
  const { text } = await callTool(base, 'queue_peek', { channel: 'orders', max_messages: 100 })
  return JSON.parse(text)
}

/** A script that orders by the form of the example. */
function ordering(order: string): string {
  return `
    document.querySelector('input').value = ${JSON.stringify(order)}
    document.querySelector('form').requestSubmit()
  `
}

describe.skipIf(!hasChromium)('in a real browser', () => {
  test('SVC-4, ORIGIN-1, S6 - no request of an untrusted page has an effect at /mcp', async () => {
    const { http } = await serve()
    const url = `${http.url}/mcp`
    const page = await openPage(EVIL)
    expect(await page.run(fetching(url, { method: 'POST', headers: AS_JSON, body: SEND }))).toMatchObject({
      status: 403,
      text: '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"origin not allowed; add it to CONNECTORSMCP_TRUSTED_ORIGINS"}}',
    })
    expect(await page.run(fetching(url, { headers: { accept: 'text/event-stream' } }))).toMatchObject({ status: 403 })
    expect(await page.run(fetching(url, { method: 'DELETE' }))).toMatchObject({ status: 403 })
    // What needs no preflight: the browser sends it all, and shows nothing of the answer.
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      const init = { method: 'POST', mode: 'no-cors', headers: { 'content-type': type }, body: SEND }
      expect(await page.run(fetching(url, init))).toEqual({ type: 'opaque', status: 0, text: '' })
    }
    expect(await page.run(`return navigator.sendBeacon(${JSON.stringify(url)}, ${JSON.stringify(SEND)})`)).toBe(true)
    // A form of plain text whose name and value together are the call; it answers into a frame.
    await page.run(`
      const frame = document.createElement('iframe')
      frame.name = 'answer'
      document.body.append(frame)
      const form = document.createElement('form')
      Object.assign(form, { method: 'POST', enctype: 'text/plain', action: ${JSON.stringify(url)}, target: 'answer' })
      const [name, value] = ${JSON.stringify(SEND)}.split('from a page')
      const input = document.createElement('input')
      Object.assign(input, { type: 'hidden', name: name + 'x', value: value })
      form.append(input)
      document.body.append(form)
      await new Promise((resolve) => { frame.onload = resolve; form.submit() })
    `)
    // A frame without an origin of its own.
    const framed = `fetch(${JSON.stringify(url)}, { method: 'POST', mode: 'no-cors', body: ${JSON.stringify(SEND)} })
      .finally(() => parent.postMessage('done', '*'))`
    await page.run(`
      const frame = document.createElement('iframe')
      frame.sandbox = 'allow-scripts'
      frame.srcdoc = ${JSON.stringify(`<script>${framed}<`)} + '/script>'
      await new Promise((resolve) => { addEventListener('message', resolve); document.body.append(frame) })
    `)
    expect(await orders(http.url)).toEqual([])
    expect(await page.run(`return location.hostname`)).toBe(EVIL)
  })

  test('ORIGIN-1, S6 - a page of a trusted origin calls /mcp and reads the answer; which those are is a setting', async () => {
    const { http } = await serve()
    const call = fetching(`${http.url}/mcp`, { method: 'POST', headers: AS_JSON, body: SEND })
    for (const host of ['localhost', '127.0.0.1']) {
      const answer = await (await openPage(host)).run<{ status: number; text: string }>(call)
      expect(answer.status, host).toBe(200)
      expect(JSON.parse(answer.text)).toMatchObject({ id: 1, result: { isError: false } })
    }
    expect(await orders(http.url)).toHaveLength(2)
    const port = await servePage(BLANK)
    const listing = await serve({ connectors: { mcp: { trustedOrigins: [`http://${EVIL}:${port}`] } } })
    const trusted = await Page.open(browser, `http://${EVIL}:${port}/`)
    const ping = { method: 'POST', headers: AS_JSON, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' }
    expect(await trusted.run(fetching(`${listing.http.url}/mcp`, ping))).toMatchObject({ status: 200 })
    const other = await openPage('localhost')
    expect(await other.run(fetching(`${listing.http.url}/mcp`, ping))).toMatchObject({ status: 403 })
  })

  test('CORS-1, CORS-7 - the preflight of a browser is answered as the table of the specification says', async () => {
    const { http } = await serve()
    const url = `${http.url}/mcp`
    const page = await openPage('localhost')
    const initialize = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } },
    })
    const headers = {
      ...AS_JSON,
      accept: 'application/json, text/event-stream',
      authorization: 'Bearer none-is-needed',
      'mcp-protocol-version': '2025-11-25',
      'last-event-id': '1',
    }
    const session = await page.run<string>(`
      const init = ${JSON.stringify({ method: 'POST', headers, body: initialize })}
      const opened = await fetch(${JSON.stringify(url)}, init)
      return opened.headers.get('mcp-session-id')
    `)
    expect(session).toMatch(/^[\x21-\x7E]+$/)
    const preflightOf = () => page.responses.find(({ type }) => type === 'Preflight')
    // The browser reports it by another way than the result of the script.
    await expect.poll(preflightOf).toMatchObject({ url, status: 204 })
    const preflight = preflightOf()
    const cors = Object.entries(preflight?.headers ?? {}).filter(([name]) => name.startsWith('access-control-'))
    expect(Object.fromEntries(cors)).toEqual({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, POST, DELETE, OPTIONS',
      'access-control-allow-headers':
        'Authorization, Content-Type, MCP-Protocol-Version, MCP-Session-Id, Last-Event-ID, Accept',
      'access-control-expose-headers': 'MCP-Session-Id, MCP-Protocol-Version',
      'access-control-max-age': '86400',
    })
    const withSession = { ...AS_JSON, 'mcp-session-id': session }
    const ping = { method: 'POST', body: '{"jsonrpc":"2.0","id":2,"method":"ping"}' }
    expect(await page.run(fetching(url, { ...ping, headers: withSession }))).toMatchObject({ status: 200 })
    expect(await page.run(fetching(url, { method: 'DELETE', headers: withSession }))).toMatchObject({ status: 405 })
    // Not in the table: the browser does not even send the call.
    expect(await page.run(fetching(url, { ...ping, headers: { ...AS_JSON, 'x-other': '1' } }))).toBe(UNREADABLE)
    expect(await page.run(fetching(url, { ...ping, method: 'PUT', headers: AS_JSON }))).toBe(UNREADABLE)
    // AllowCredentials is false, so nothing is shown to a page that sends cookies.
    expect(await page.run(fetching(url, { ...ping, headers: AS_JSON, credentials: 'include' }))).toBe(UNREADABLE)
  })

  test('CORS - with a list of origins, a page of another one reads no answer, trusted or not', async () => {
    const { http } = await serve({ cors: { allowOrigins: ['https://app.example'] } })
    const ping = { method: 'POST', headers: AS_JSON, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' }
    for (const host of [EVIL, 'localhost']) {
      const page = await openPage(host)
      expect(await page.run(fetching(`${http.url}/mcp`, ping)), host).toBe(UNREADABLE)
      expect(await page.run(fetching(`${http.url}/ping`)), host).toBe(UNREADABLE)
    }
  })

  test('S6 - the page of the CloudEvents example works from a trusted origin, and does nothing from another', async () => {
    const { http } = await serve()
    const example = readFileSync(join(import.meta.dirname, '../../../examples/cloudevents/page.html'), 'utf8')
    const html = example.replace('<meta ', `<base href="${http.url}/"><meta `)
    const items = `return [...document.querySelectorAll('li')].map((item) => item.textContent)`
    const evil = await openPage(EVIL, html)
    // Not a secure context, and so without an id from crypto; the broker is not to be saved by that.
    await evil.run(`crypto.randomUUID = () => '1'; ${ordering('from evil')}`)
    const refused = () => evil.responses.filter(({ url, status }) => url.includes('/ce/') && status === 403).length
    // The event source, and what the form sent.
    await expect.poll(refused, { timeout: 20_000 }).toBe(2)
    const page = await openPage('localhost', html)
    await page.run(ordering('tea'))
    await expect
      .poll(() => page.run(items), { timeout: 20_000 })
      .toEqual(['1: tea (com.example.order.created from /page)'])
    await page.run(ordering('cake'))
    await expect.poll(() => page.run<string[]>(items), { timeout: 20_000 }).toHaveLength(2)
    const second = await openPage('localhost', html)
    await expect.poll(() => second.run<string[]>(items), { timeout: 20_000 }).toHaveLength(2)
    expect(await evil.run(items)).toEqual([])
    expect(await evil.run(`return orders.readyState === EventSource.CLOSED`)).toBe(true)
  })

  test('S6, S7 - no page reads the management listener, not even of a trusted origin', async () => {
    const { api } = await serve()
    for (const host of [EVIL, 'localhost']) {
      const page = await openPage(host)
      for (const path of ['/metrics', '/health', '/ready', '/ping']) {
        expect(await page.run(fetching(`${api.url}${path}`)), `${host} ${path}`).toBe(UNREADABLE)
        expect(await page.run(fetching(`${api.url}${path}`, { headers: AS_JSON }))).toBe(UNREADABLE)
      }
    }
    for (const method of ['GET', 'OPTIONS']) {
      const headers = { origin: 'http://localhost:3000', 'access-control-request-method': 'GET' }
      const response = await fetch(`${api.url}/metrics`, { method, headers })
      expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  })

  test('S6 - a page of an origin that is not trusted neither lists agents nor registers, removes or calls one', async () => {
    const { http } = await serve()
    const card = { agent_id: 'agent-1', name: 'One', url: 'http://127.0.0.1:9/' }
    await register(http.url, card)
    const calls = [
      ['GET', '/agents'],
      ['GET', '/agents/agent-1'],
      ['POST', '/agents/register', { ...card, agent_id: 'agent-2' }],
      ['POST', '/agents/deregister', { agent_id: 'agent-1' }],
      ['DELETE', '/agents/agent-1'],
      ['POST', '/a2a/agent-1', { jsonrpc: '2.0', id: 1, method: 'message/send', params: {} }],
    ] as const
    const statuses = (page: Page) =>
      Promise.all(
        calls.map(async ([method, path, body]) => {
          const init = { method, ...(body === undefined ? {} : { headers: AS_JSON, body: JSON.stringify(body) }) }
          return (await page.run<{ status: number }>(fetching(`${http.url}${path}`, init))).status
        }),
      )
    const evil = await openPage(EVIL)
    expect(await statuses(evil)).toEqual(calls.map(() => 403))
    const simple = { method: 'POST', mode: 'no-cors', body: JSON.stringify({ agent_id: 'agent-1' }) }
    await evil.run(fetching(`${http.url}/agents/deregister`, simple))
    expect(await listed(http.url)).toEqual(['agent-1'])
    // The card is public, whoever asks.
    const path = '/a2a/agent-1/.well-known/agent-card.json'
    expect(await evil.run(fetching(`${http.url}${path}`))).toMatchObject({ status: 200 })
    const page = await openPage('localhost')
    expect(await page.run(fetching(`${http.url}/agents/agent-1`, { method: 'DELETE' }))).toMatchObject({ status: 200 })
    expect(await listed(http.url)).toEqual([])
  })
})
